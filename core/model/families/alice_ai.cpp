// Alice AI: Kimi's delta attention in some layers, Qwen3-Next's gated attention in the others, experts beside a gated shared one,
// and residuals that attend to earlier ones, mixed before attention and before the experts. Source: vLLM 0.33's alice_ai.py,
// which has no configuration class, so that a config must tell all sizes; no total is published.
#include "core/model/families/all_more.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// One vector scores residuals, another one norms them.
void add_residual_mix(Module& module, const std::string& matrix, const std::string& norm_weight,
                      const Quantity& hidden) {
  add_linear(module, {.name = matrix,
                      .in = hidden,
                      .out = 1,
                      .role = Role::residual_mix,
                      .part = Part::norm,
                      .quantizable = false});
  module.tensors.push_back(parameter(norm_weight, {hidden}, Role::residual_mix, Part::norm));
}

Module alice_delta(ConfigReader& config, const KimiDeltaAttention& k) {
  config.require(config.size("linear_num_value_heads").value() == k.heads.value() &&
                     config.size("linear_value_head_dim").value() == k.head_dim.value(),
                 "linear attention whose values have other heads than its keys is not described");
  Module module = kimi_delta_attention(k);
  module.path = "linear_attn";
  for (TensorSpec& spec : module.tensors) {
    if (spec.name == "A_log") spec.name = "a_log_bias";
  }
  return module;
}

Decoder read_alice(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size");
  d.hidden = config.size("hidden_size");
  config.size("num_hidden_layers");  // required: read_layers would take a default
  d.layers = read_layers(config, "num_hidden_layers", 1);
  d.heads = config.size("num_attention_heads");
  d.kv_heads = config.size("num_key_value_heads");
  d.head_dim = config.size("head_dim");
  d.tied = false;  // the head is loaded always
  note_sizes(tree, d);
  return d;
}

Mixture read_alice_mixture(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  config.size("num_experts"), config.size("num_experts_per_tok");  // required
  Mixture m{d.hidden, read_experts(config, tree, "num_experts", 1, "num_experts_per_tok", 1),
            config.size("moe_intermediate_size")};
  m.correction = "gate.e_score_correction_bias";
  m.shared_width = config.size("shared_expert_intermediate_size");
  m.shared_path = "shared_expert";
  m.shared_gate = true;
  return m;
}

void describe_alice_ai(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_alice(config, tree);
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  a.gated_q = true;
  KimiDeltaAttention k{d.hidden, config.size("linear_num_key_heads"), config.size("linear_key_head_dim"),
                       config.size("linear_conv_kernel_dim")};
  k.decay_shape = {1, 1, k.heads, 1};
  const Module delta = alice_delta(config, k);
  const Mixture m = read_alice_mixture(config, tree, d);
  const auto types = layer_texts(config, "layer_types", d.layers);
  config.require(types.has_value(), "layer_types is missing");
  for (const std::string& type : *types)
    config.require(type == "full_attention" || type == "linear_attention",
                   "a layer of type \"" + type + "\" is not described");
  const auto is_full = [&](std::uint64_t i) { return (*types)[i] == "full_attention"; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(i == 0 ? "first layer, of " : "layers of ") + (is_full(i) ? "attention" : "KDA");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (i > 0) add_residual_mix(layer, "attn_res_proj", "attn_res_norm_weight", d.hidden);
        add_residual_mix(layer, "mlp_res_proj", "mlp_res_norm_weight", d.hidden);
        layer.children = {is_full(i) ? attention(a) : delta, mixture(m)};
      });
  add_frame(tree, d, groups);
  Module last{"model.attnres_final", "last mix of residuals", {}, {}, {}};
  add_residual_mix(last, "res_proj", "res_norm_weight", d.hidden);
  tree.modules.insert(tree.modules.end() - 2, std::move(last));
  const auto attending = layers_where(d.layers, is_full);
  const auto scanning = layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); });
  if (!attending.empty()) tree.attention.push_back(geometry(a, attending));
  if (!scanning.empty()) tree.recurrent.push_back(geometry(k, scanning));
  if (config.number("mtp_num_hidden_layers|num_nextn_predict_layers", 0) > 0)
    tree.not_counted.push_back(
        {"layers for prediction (mtp): their tensors are not described", std::nullopt});
}

constexpr std::string_view kAliceAiArchitectures[] = {"AliceAIForCausalLM"}, kAliceAiTypes[] = {"alice_ai"};

}  // namespace

const Family kAliceAi = {"alice_ai", "Alice AI", kAliceAiArchitectures, kAliceAiTypes, {}, describe_alice_ai};

}  // namespace assay::families
