// Lara Mini (Translated): layers in fives of Gated DeltaNet, windows and full attention, experts beside a shared one that no
// gate weighs. What enters the delta rule is one matrix, q, k, v, z, β and the decay's below one another. Source: transformers
// 5.24, models/lara_mini, and the names of its checkpoints in conversion_mapping.py.
#include <algorithm>

#include "core/model/families/all_kin.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr DecoderDefaults kLaraSizes = {.vocabulary = 151936,
                                        .hidden = 1024,
                                        .intermediate = 0,
                                        .layers = 34,
                                        .heads = 16,
                                        .kv_heads = 4,
                                        .head_dim = 128,
                                        .tied = true};

enum class LaraLayer { linear, window, full };

LaraLayer lara_layer(const ConfigReader& config, const std::string& type) {
  if (type == "linear_attention") return LaraLayer::linear;
  if (type == "sliding_attention") return LaraLayer::window;
  config.require(type == "full_attention",
                 "layer_types names none of linear_attention, sliding_attention, full_attention");
  return LaraLayer::full;
}

std::vector<LaraLayer> lara_layers(ConfigReader& config, const Quantity& count) {
  constexpr LaraLayer kPattern[] = {LaraLayer::linear, LaraLayer::window, LaraLayer::linear, LaraLayer::full,
                                    LaraLayer::window};
  std::vector<LaraLayer> layers;
  const auto types = layer_texts(config, "layer_types", count);
  for (std::uint64_t i = 0; i < count.value(); ++i)
    layers.push_back(types ? lara_layer(config, (*types)[i]) : kPattern[i % std::size(kPattern)]);
  return layers;
}

// The four matrices of the block as the rows of one, and the norm under its own name.
Module lara_delta_net(const GatedDeltaNet& n) {
  Module module = gated_delta_net(n);
  const auto enters = [](const TensorSpec& spec) { return spec.name.starts_with("in_proj_"); };
  TensorSpec whole = *std::find_if(module.tensors.begin(), module.tensors.end(), enters);
  whole.name = "in_proj.weight", whole.shape[0] = 0, whole.elements = 0, whole.parallel.members.clear();
  for (const TensorSpec& spec : module.tensors) {
    if (!enters(spec)) continue;
    whole.shape[0] += spec.shape[0], whole.elements = whole.elements + spec.elements;
    const auto& rows = spec.parallel.members;
    whole.parallel.members.insert(whole.parallel.members.end(), rows.begin(), rows.end());
  }
  std::erase_if(module.tensors, enters);
  module.tensors.insert(module.tensors.begin(), std::move(whole));
  for (TensorSpec& spec : module.tensors) {
    if (spec.role == Role::recurrent_norm) spec.name = "out_norm.weight";
  }
  return module;
}

Mixture lara_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden, read_experts(config, tree, "num_experts", 128, "num_experts_per_tok", 4),
            config.size("moe_intermediate_size", 512)};
  m.shared_width = config.size("shared_expert_intermediate_size", 512);
  m.shared_path = "shared_expert";
  m.stacks = Mixture::Stacks::output_major;
  return m;
}

void describe_lara_mini(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree, kLaraSizes);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  const GatedDeltaNet n{d.hidden,
                        config.size("linear_num_key_heads", 8),
                        config.size("linear_num_value_heads", 16),
                        config.size("linear_key_head_dim", 128),
                        config.size("linear_value_head_dim", 128),
                        config.size("linear_conv_kernel_dim", 4)};
  config.require_divides(n.key_heads, n.value_heads);
  const Mixture m = lara_experts(config, tree, d);
  const auto kinds = lara_layers(config, d.layers);
  const auto are = [&](LaraLayer kind) {
    return layers_where(d.layers, [&](std::uint64_t i) { return kinds[i] == kind; });
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return kinds[i] == LaraLayer::linear ? "DeltaNet MoE layers" : "attention MoE layers";
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {kinds[i] == LaraLayer::linear ? lara_delta_net(n) : attention(a), mixture(m)};
      });
  add_frame(tree, d, groups);
  if (const auto full = are(LaraLayer::full); !full.empty()) tree.attention.push_back(geometry(a, full));
  if (const auto narrow = are(LaraLayer::window); !narrow.empty())
    tree.attention.push_back(geometry(a, narrow, config.size("sliding_window", 512).value()));
  if (const auto linear = are(LaraLayer::linear); !linear.empty())
    tree.recurrent.push_back(geometry(n, linear));
}

constexpr std::string_view kLaraArchitectures[] = {"LaraMiniForCausalLM"}, kLaraTypes[] = {"lara_mini"};

}  // namespace

const Family kLaraMini = {"lara_mini", "Lara Mini", kLaraArchitectures, kLaraTypes, {}, describe_lara_mini};

}  // namespace assay::families
