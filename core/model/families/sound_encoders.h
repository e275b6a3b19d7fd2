// What stands behind an encoder of sound by itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

struct SoundHead {
  Quantity hidden, depth;
  std::uint64_t narrow = 256;                   // between a classifier's matrices
  std::optional<std::uint64_t> letters = {32};  // of CTC; absent: the config must say
};
// "ForCTC", "ForSequenceClassification" or "ForAudioFrameClassification".
void add_sound_head(ConfigReader& config, ModuleTree& tree, const SoundHead& of, std::string_view head);

// What wav2vec 2.0 has before its layers, below one path, where the convolution for places is normed elsewhere.
void add_samples_net(ConfigReader& config, ModuleTree& tree, const Quantity& hidden, const std::string& path);
// A conformer's blocks, as w2v-BERT 2.0 and wav2vec 2.0's conformer name them (w2v_bert.cpp).
struct ConformerClass {
  std::uint64_t wide = 4096, heads = 16;
  std::string_view places = "relative_key";
  bool batch_norm = false;  // behind the convolution within each channel; else a LayerNorm
};
Module conformer_layers(ConfigReader& config, const std::string& path, const SoundHead& of,
                        const ConformerClass& defaults);

}  // namespace assay::families
