// RWKV-6 (Finch, arXiv 2404.05892) under the names of flash-linear-attention (fla-hub/rwkv6-*), which are others than those of
// RWKV's own releases (rwkv6.cpp). Source: flash-linear-attention 0.6, fla/layers/rwkv6.py and fla/models/rwkv6.
#include <cmath>

#include "core/model/families/all_kin.h"
#include "core/model/families/flash_linear.h"

namespace assay::families {
namespace {

using namespace blocks;

struct FinchOfFla {
  Quantity hidden, heads, keys, values, mix_rank, decay_rank;
};

FinchOfFla read_finch(ConfigReader& config, const Quantity& hidden) {
  FinchOfFla f{hidden,
               config.size("num_heads", 4),
               expanded(config, "expand_k", 0.5, hidden),
               expanded(config, "expand_v", 1, hidden),
               config.size("proj_low_rank_dim", 32),
               config.size("gate_low_rank_dim", 64)};
  config.require_divides(f.heads, f.keys);
  config.require_divides(f.heads, f.values);
  return f;
}

Module finch_attention(const FinchOfFla& f) {
  Module module{"attn", "time mixing (RWKV-6)", {}, {}, {}};
  const Quantity mixed = Quantity(5) * f.mix_rank;  // r, w, k, v and g, each by its own share
  const auto mixes = [&](const std::string& name, const Quantity& in, const Quantity& out) {
    add_linear(module,
               {.name = name, .in = in, .out = out, .role = Role::residual_mix, .part = Part::attention});
  };
  mixes("x_proj.0.linear", f.hidden, mixed);
  module.tensors.push_back(parameter("x_proj.0.mu", {f.hidden}, Role::residual_mix, Part::attention));
  mixes("x_proj.2", mixed, f.hidden);
  module.tensors.push_back(parameter("x_bias", {5, f.hidden}, Role::residual_mix, Part::attention));
  add_mixing(module, {"r_proj.linear", f.hidden, f.keys, Role::q, f.heads});
  add_low_rank(module, {"w_proj.linear", f.hidden, f.keys, Role::recurrent_decay, f.heads, true},
               f.decay_rank);
  add_mixing(module, {"k_proj.linear", f.hidden, f.keys, Role::k, f.heads});
  add_mixing(module, {"v_proj.linear", f.hidden, f.values, Role::v, f.heads});
  add_mixing(module, {"g_proj.linear", f.hidden, f.values, Role::recurrent_gate, f.heads});
  module.tensors.push_back(parameter("bonus",
                                     {f.heads, Quantity("keys of a head", f.keys.value() / f.heads.value())},
                                     Role::skip, Part::attention));
  add_norm(module, "g_norm", f.values, Role::recurrent_norm, true, Part::attention);
  add_mixing_out(module, f.values, f.hidden, f.heads);
  return module;
}

Module finch_feed_forward(const Quantity& hidden, const Quantity& width) {
  PlainMlp plain{hidden, width, "ffn", false};
  plain.up = "key.linear", plain.down = "value";
  Module module = plain_mlp(plain);
  module.tensors.push_back(parameter("key.mu", {hidden}, Role::residual_mix, Part::dense_mlp));
  add_linear(module, {.name = "receptance.linear",
                      .in = hidden,
                      .out = hidden,
                      .role = Role::mlp_gate,
                      .part = Part::dense_mlp});
  module.tensors.push_back(parameter("receptance.mu", {hidden}, Role::residual_mix, Part::dense_mlp));
  return module;
}

Quantity feed_forward_width(ConfigReader& config, const Quantity& hidden) {
  if (const auto given = config.optional_size("intermediate_size")) return *given;
  const double ratio = config.real("hidden_ratio", 3.5, 0, 4096);
  return by_hidden_ratio(config, static_cast<double>(hidden.value()) * ratio, 32);
}

void describe_fla_rwkv6(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.has("attn"), "attn is there: RWKV-6 with layers that attend is not described");
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", 2048);
  d.layers = read_layers(config, "num_hidden_layers", 24);
  d.tied = config.tied_embeddings(false);
  d.intermediate = feed_forward_width(config, d.hidden);
  note_sizes(tree, d);
  const FinchOfFla f = read_finch(config, d.hidden);
  const bool first = config.flag("norm_first", true), bias = config.flag("norm_bias", true);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return i == 0 && first ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i == 0 && first) add_norm(layer, "pre_norm", d.hidden, Role::embedding_norm, bias);
        add_norm(layer, "attn_norm", d.hidden, Role::input_norm, bias);
        add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm, bias);
        layer.children = {finch_attention(f), finch_feed_forward(d.hidden, d.intermediate)};
      });
  add_frame(tree, d, groups, {.embedding = "model.embeddings", .norm_bias = bias});
  // The last input of each half; of each head a matrix.
  tree.recurrent.push_back({.title = "RWKV-6",
                            .layers = all_layers(d.layers),
                            .heads = f.heads.value(),
                            .conv_values = 2 * d.hidden.value(),
                            .state_values = f.keys.value() / f.heads.value() * f.values.value()});
}

constexpr std::string_view kFlaRwkv6Names[] = {"RWKV6ForCausalLM"}, kFlaRwkv6Types[] = {"rwkv6"};

}  // namespace

const Family kFlaRwkv6 = {
    "fla_rwkv6", "RWKV-6 of flash-linear-attention", kFlaRwkv6Names, kFlaRwkv6Types, {}, describe_fla_rwkv6};

}  // namespace assay::families
