// Decoders told by what differs from a Llama: a bias, a norm, other names, latent attention, experts in place of the
// MLP. One LlamaKin a family; what does not fit one has a description of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/blocks.h"
#include "core/model/families/deepseek.h"

namespace assay::families {

// Where a config says how many experts there are, how wide, and in which layers.
struct ExpertKin {
  std::string_view count_keys;
  std::uint64_t count;
  std::string_view active_keys;
  std::uint64_t active;
  std::string_view width_keys;
  std::uint64_t width;
  // Shared experts: so many times the width of a routed one; or their width itself. Keys "": there are none.
  std::string_view shared_keys = {};
  std::uint64_t shared = 0;
  std::string_view shared_width_keys = {};
  std::uint64_t shared_width = 0;
  // Layers with an MLP before those with experts, where mlp_layer_types does not list them. Keys "": as many always.
  std::string_view dense_first_keys = {};
  std::uint64_t dense_first = 0;
  blocks::Mixture names = {};  // paths and names: whatever is no number
};

struct LlamaKin {
  blocks::DecoderDefaults sizes;
  // Attention: names and norms as `heads` has them; sizes come from the config.
  blocks::HeadAttention heads = {};
  std::string_view bias_keys = "attention_bias";  // of q, k and v; "": `bias` always
  bool bias = false;
  std::optional<std::string_view> output_bias_keys = {};  // of o; absent: as q, k and v; "": none
  std::optional<LatentDefaults> latent = {};              // in place of heads

  blocks::GatedMlp mlp = {};
  std::string_view mlp_bias_keys = {};  // "": mlp.bias always
  std::optional<ExpertKin> experts = {};

  // Norms before attention and MLP, and of their outputs; "" where there is none.
  std::string_view input_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string_view after_attention = {}, after_mlp = {};
  bool norm_bias = false, no_final_norm = false;
  bool windows = false;      // sliding_window counts
  std::uint64_t window = 0;  // … and its default; 0: none
  // Which layers have it where layer_types is silent; empty: none.
  std::function<bool(std::uint64_t layer)> windowed = {};
  std::string_view layer_path = "model.layers.{layer}";
  blocks::Frame frame = {};
  // Tensors that no other family has.
  void (*more)(ConfigReader& config, const blocks::Decoder& d, Module& attention, Module& mlp) = nullptr;
};

// What layers are made of.
struct KinParts {
  Module attend, dense, sparse;
};
KinParts describe_kin(ConfigReader& config, ModuleTree& tree, const LlamaKin& kin);
// For families that read their sizes under other keys, or say otherwise which layers hold experts.
KinParts describe_kin(ConfigReader& config, ModuleTree& tree, const LlamaKin& kin, const blocks::Decoder& d,
                      std::function<bool(std::uint64_t layer)> has_experts = {});

// A table of learnt positions, stored behind the embedding.
void add_positions(ModuleTree& tree, std::string path, const Quantity& positions, const Quantity& width);

}  // namespace assay::families
