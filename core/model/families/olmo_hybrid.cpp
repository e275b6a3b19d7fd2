// OLMo Hybrid: Gated DeltaNet with a matrix each for q, k, v and gates in three layers of four, OLMo 2's attention and
// norms in the fourth.
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

GatedDeltaNet read_apart(ConfigReader& config, const Decoder& d) {
  GatedDeltaNet n;
  n.hidden = d.hidden;
  n.key_heads = config.size("linear_num_key_heads", d.heads);
  n.value_heads = config.size("linear_num_value_heads", d.heads);
  n.key_dim = config.size("linear_key_head_dim", Quantity("3/4 × hidden_size / linear_num_key_heads",
                                                          3 * d.hidden.value() / (4 * n.key_heads.value())));
  n.value_dim =
      config.size("linear_value_head_dim", Quantity("2 × linear_key_head_dim", 2 * n.key_dim.value()));
  n.kernel = config.size("linear_conv_kernel_dim", 4);
  return n;
}

// Each of q, k and v passes a convolution of its own.
Module delta_net_apart(const GatedDeltaNet& n) {
  Module module{"linear_attn", "linear attention (Gated DeltaNet)", {}, {}, {}};
  const Quantity keys = n.key_heads * n.key_dim, values = n.value_heads * n.value_dim;
  const auto into = [&](const std::string& name, const Quantity& out, Role role, const Quantity& heads,
                        bool quantizable = true) {
    add_linear(module, {.name = name,
                        .in = n.hidden,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = heads.value(),
                        .quantizable = quantizable});
  };
  into("q_proj", keys, Role::q, n.key_heads);
  into("k_proj", keys, Role::k, n.key_heads);
  into("v_proj", values, Role::v, n.value_heads);
  into("a_proj", n.value_heads, Role::recurrent_decay, n.value_heads, false);
  into("b_proj", n.value_heads, Role::recurrent_beta, n.value_heads, false);
  into("g_proj", values, Role::recurrent_gate, n.value_heads);
  for (const auto& [name, channels] : {std::pair{"q", keys}, {"k", keys}, {"v", values}})
    module.tensors.push_back(parameter(std::string(name) + "_conv1d.weight", {channels, 1, n.kernel},
                                       Role::convolution, Part::attention));
  module.tensors.push_back(parameter("A_log", {n.value_heads}, Role::decay, Part::attention));
  module.tensors.push_back(parameter("dt_bias", {n.value_heads}, Role::time_bias, Part::attention));
  add_norm(module, "o_norm", n.value_dim, Role::recurrent_norm, false, Part::attention);
  add_linear(module, {.name = "o_proj",
                      .in = values,
                      .out = n.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = n.value_heads.value()});
  return module;
}

// Where the config does not say: every fourth layer attends, or the last, if there are fewer.
std::function<bool(std::uint64_t)> attending_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] != "linear_attention"; };
  return [n = count.value()](std::uint64_t i) { return i % 4 == 3 || (n < 4 && i + 1 == n); };
}

void describe_olmo_hybrid(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 100352, .hidden = 3840, .intermediate = 11008, .layers = 32, .heads = 30});
  const auto attends = attending_layers(config, d.layers);
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::full_width;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const GatedDeltaNet n = read_apart(config, d);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return attends(i) ? "attention layers" : "Gated DeltaNet layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, attends(i) ? "post_attention_layernorm" : "attention_layer_norm", d.hidden,
                 attends(i) ? Role::post_attention_norm : Role::input_norm);
        add_norm(layer, attends(i) ? "post_feedforward_layernorm" : "feedforward_layer_norm", d.hidden,
                 attends(i) ? Role::post_feedforward_norm : Role::pre_feedforward_norm);
        layer.children = {attends(i) ? attention(a) : delta_net_apart(n), gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  const auto full = layers_where(d.layers, attends);
  const auto linear = layers_where(d.layers, [&](std::uint64_t i) { return !attends(i); });
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!linear.empty()) tree.recurrent.push_back(geometry(n, linear));
}

// Released models rotate nothing: rope_theta is null there, which is not the same as absent.
Hyperparameters read_olmo_hybrid(ConfigReader& config, const ModuleTree& tree) {
  const ParsedJson* rope = object_in(config, "rope_parameters");
  const ParsedJson& keys = rope != nullptr && rope->contains("rope_theta") ? *rope : config.config().text();
  const auto theta = keys.find("rope_theta");
  const bool rotates = theta == keys.end() || !theta->is_null();
  return read_forward(config, tree, {.rope = {.context = 65536}, .rotates = rotates});
}

constexpr std::string_view kOlmoHybridArchitectures[] = {"OlmoHybridForCausalLM"},
                           kOlmoHybridTypes[] = {"olmo_hybrid"};

}  // namespace

const Family kOlmoHybrid = {
    "olmo_hybrid",        "OLMo Hybrid",   kOlmoHybridArchitectures, kOlmoHybridTypes, {},
    describe_olmo_hybrid, read_olmo_hybrid};

}  // namespace assay::families
