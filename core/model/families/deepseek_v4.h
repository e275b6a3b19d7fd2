// What DeepSeek-V4's layers are made of, which those of V4.1 have too: one head of keys that are values, an output
// projection in groups, residuals in m streams, and experts in every layer. Names have no "model.".
#pragma once

#include <string>
#include <vector>

#include "core/model/blocks.h"
#include "core/model/families/deepseek.h"

namespace assay::families {

struct V4Sizes {
  blocks::Decoder d;
  Quantity q_rank, groups, group_rank, streams;
  Indexer indexer;
  blocks::Mixture mixture;
};
V4Sizes read_v4_sizes(ConfigReader& config, ModuleTree& tree);

// A matrix of attention without a bias.
void add_v4_linear(Module& module, const std::string& name, const Quantity& in, const Quantity& out,
                   Role role, bool quantizable = true, Partition partition = Partition::replicated,
                   std::uint64_t units = 0);
// Attention over a window alone: queries, keys, output, sinks.
Module v4_attention(const V4Sizes& s);
// Which streams a block reads, and how its output and the streams are mixed: (2 + m) m coefficients out of all m
// streams.
void add_v4_streams(Module& module, const std::string& name, const Quantity& coefficients,
                    std::uint64_t scales, const V4Sizes& s);
// The norms and streams around a layer's attention and experts.
void add_v4_frame(Module& layer, const V4Sizes& s);
// The cache of layers behind a window, and an entry for so many tokens; 0: the window alone.
AttentionGeometry v4_cache(const V4Sizes& s, std::uint64_t ratio, std::vector<std::uint64_t> where,
                           std::uint64_t window);

// deepseek_vision.cpp: the bias by which a mixture's experts are chosen where an image is, and what sees.
void add_v4_image_bias(Module& mixture, const Quantity& experts);
struct V4Vision {
  Quantity width, wide, patch;
  Quantity joined;  // so many patches on a side become one token
  Quantity depth;
  std::vector<std::string> marks;  // vectors in place of tokens around an image
};
void add_v4_vision(ModuleTree& tree, const V4Vision& of);

// deepseek_dspark.cpp: layers that draft tokens instead of predicting them one by one; whether the config has them.
struct Drafting {
  std::uint64_t count = 0;
  Module experts;                    // of each of these layers
  bool mixes_streams = false;        // the last one has weights for it
  std::string looked_up, predicted;  // the two tables of the head of low rank
};
bool drafts(const ConfigReader& config);
void add_drafting(ConfigReader& config, ModuleTree& tree, const V4Sizes& s, const Drafting& drafting);

}  // namespace assay::families
