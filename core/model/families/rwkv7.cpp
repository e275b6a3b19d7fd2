// RWKV-7 (arXiv 2503.14456) as flash-linear-attention publishes it (fla-hub/rwkv7-*): a delta rule whose decay, rate and gate
// are made by matrices of low rank, each input mixed with the token before; values lean on those of the first layer.
#include <algorithm>
#include <cmath>

#include "core/model/families/all_hub.h"
#include "core/model/families/flash_linear.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Goose {
  Quantity hidden, heads, head_dim, decay, gate, rate, value;
};

// As the class does where a config is silent: whole multiples of 32 nearest to a share of √hidden.
Quantity read_rank(ConfigReader& config, std::string_view key, const Quantity& hidden, double times) {
  const double root = std::sqrt(static_cast<double>(hidden.value()));
  const auto rank = static_cast<std::uint64_t>(std::nearbyint(times * root / 32) * 32);
  return config.size(key, Quantity(std::string(key), std::max<std::uint64_t>(32, rank)));
}

Module goose_time_mixing(const Goose& g, bool first) {
  Module module{"attn", "time mixing (RWKV-7)", {}, {}, {}};
  for (const char* name : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"})
    module.tensors.push_back(parameter(name, {1, 1, g.hidden}, Role::residual_mix, Part::attention));
  for (const char* name : {"k_k", "k_a"})
    module.tensors.push_back(parameter(name, {g.hidden}, Role::decay, Part::attention));
  module.tensors.push_back(parameter("r_k", {g.heads, g.head_dim}, Role::skip, Part::attention));
  for (const auto& [name, role] : {std::pair("r_proj", Role::q), {"k_proj", Role::k}, {"v_proj", Role::v}})
    add_mixing(module, {name, g.hidden, g.hidden, role, g.heads});
  add_low_rank(module, {"w_lora", g.hidden, g.hidden, Role::recurrent_decay, g.heads, true}, g.decay);
  if (!first)
    add_low_rank(module, {"v_lora", g.hidden, g.hidden, Role::residual_mix, g.heads, true}, g.value);
  add_low_rank(module, {"a_lora", g.hidden, g.hidden, Role::recurrent_beta, g.heads, true}, g.rate);
  add_low_rank(module, {"g_lora", g.hidden, g.hidden, Role::recurrent_gate, g.heads, false}, g.gate);
  add_norm(module, "g_norm", g.hidden, Role::recurrent_norm, true, Part::attention);
  add_mixing_out(module, g.hidden, g.hidden, g.heads);
  return module;
}

Module goose_channel_mixing(const Quantity& hidden, const Quantity& width) {
  PlainMlp plain{hidden, width, "ffn", false};
  plain.up = "key", plain.down = "value";
  Module module = plain_mlp(plain);
  module.tensors.push_back(parameter("x_k", {hidden}, Role::residual_mix, Part::dense_mlp));
  return module;
}

void describe_rwkv7(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.has("attn"), "attn is there: RWKV-7 with layers that attend is not described");
  config.require(config.flag("norm_first", true) && config.flag("norm_bias", true),
                 "norm_first or norm_bias is false: RWKV-7 has been described with both");
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", 2048);
  d.layers = read_layers(config, "num_hidden_layers", 24);
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const auto widths = !config.has("value_dim")      ? std::vector<std::uint64_t>{}
                      : config.is_list("value_dim") ? *config.numbers("value_dim")
                                                    : std::vector{config.size("value_dim").value()};
  config.require(
      std::all_of(widths.begin(), widths.end(), [&](std::uint64_t w) { return w == d.hidden.value(); }),
      "value_dim is not hidden_size: values of another width are not described");
  const Quantity head_dim = config.size("head_dim", 64), heads = config.quotient(d.hidden, head_dim, "heads");
  const double wide = static_cast<double>(head_dim.value()) / 64;
  const Goose g{d.hidden,
                heads,
                head_dim,
                read_rank(config, "decay_low_rank_dim", d.hidden, 2.5 * wide),
                read_rank(config, "gate_low_rank_dim", d.hidden, 5),
                read_rank(config, "a_low_rank_dim", d.hidden, 2.5 * wide),
                read_rank(config, "v_low_rank_dim", d.hidden, 1.7 * wide)};
  const Quantity width = config.has("intermediate_size")
                             ? config.size("intermediate_size")
                             : Quantity("hidden_ratio × hidden_size",
                                        ((config.size("hidden_ratio", 4) * d.hidden).value() + 31) / 32 * 32);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers, [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i == 0) add_norm(layer, "pre_norm", d.hidden, Role::embedding_norm, true);
        add_norm(layer, "attn_norm", d.hidden, Role::input_norm, true);
        add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm, true);
        layer.children = {goose_time_mixing(g, i == 0), goose_channel_mixing(d.hidden, width)};
      });
  add_frame(tree, d, groups, {.embedding = "model.embeddings", .norm_bias = true});
  // The last input of each half; of each head a matrix.
  tree.recurrent.push_back({.title = "RWKV-7",
                            .layers = all_layers(d.layers),
                            .heads = heads.value(),
                            .conv_values = 2 * d.hidden.value(),
                            .state_values = (d.hidden * head_dim).value()});
}

constexpr std::string_view kRwkv7Architectures[] = {"RWKV7ForCausalLM"}, kRwkv7Types[] = {"rwkv7"};

}  // namespace

const Family kRwkv7 = {"rwkv7", "RWKV-7",       kRwkv7Architectures, kRwkv7Types,
                       {},      describe_rwkv7, forward_rwkv7};

}  // namespace assay::families
