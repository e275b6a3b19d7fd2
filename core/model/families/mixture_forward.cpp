#include "core/model/families/mixture_forward.h"

#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/forward.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

constexpr ForwardClass kDots1Class = {};
constexpr ForwardClass kErnieMoeClass = {
    .epsilon = 1e-5, .rope = {.theta = 500000, .context = 131072}, .interleaved = true};
constexpr ForwardClass kFlexOlmoClass = {.rope = {.theta = 500000, .context = 4096}};
constexpr ForwardClass kGlm4MoeClass = {.epsilon = 1e-5,
                                        .rope = {.context = 131072, .partial = true, .part = 0.5}};
constexpr ForwardClass kLlama4Class = {
    .epsilon = 1e-5, .rope = {.theta = 500000, .context = 131072}, .interleaved = true};
constexpr ForwardClass kMimoClass = {.epsilon = 1e-6, .rope = {.theta = 10000, .context = 32768}};
constexpr ForwardClass kOlmoeClass = {.epsilon = 1e-5, .rope = {.context = 4096}};
constexpr ForwardClass kQwen2MoeClass = {.rope = {.context = 32768}};
constexpr ForwardClass kQwen2VlClass = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 32768}};
constexpr ForwardClass kQwen3VlClass = {.rope = {.theta = 500000, .context = 128000}};
constexpr ForwardClass kSolarClass = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 131072}};

}  // namespace

void require_groups(const ConfigReader& config, const ModuleTree& tree, const ExpertRouting& routing) {
  const bool fits =
      routing.groups > 0 && routing.chosen_groups > 0 && routing.chosen_groups <= routing.groups;
  config.require(fits, "n_group and topk_group do not fit together");
  if (routing.groups == 1) return;
  config.require(tree.experts % routing.groups == 0 &&
                     tree.experts_per_token <= tree.experts / routing.groups * routing.chosen_groups,
                 "n_group, topk_group and num_experts_per_tok do not fit the number of experts");
}

void read_groups(ConfigReader& config, const ModuleTree& tree, bool renormalizes, Hyperparameters& h) {
  h.routing.renormalize = config.flag("norm_topk_prob|moe_renormalize", renormalizes);
  if (!config.is_null("routed_scaling_factor"))
    h.routing.scale = config.real("routed_scaling_factor", 1, 0, 1e6);
  h.routing.groups = config.number("n_group|num_expert_group", 1);
  h.routing.chosen_groups = config.number("topk_group", 1);
  require_groups(config, tree, h.routing);
}

Hyperparameters forward_dots1(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kDots1Class);
  read_groups(config, tree, false, h);
  return h;
}
Hyperparameters forward_ernie4_5_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kErnieMoeClass);
  h.routing.renormalize = true;
  return h;
}
Hyperparameters forward_flex_olmo(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kFlexOlmoClass);
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  return h;
}
Hyperparameters forward_glm4_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGlm4MoeClass);
  read_groups(config, tree, true, h);
  return h;
}
Hyperparameters forward_hunyuan_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = forward_hunyuan(config, tree);
  h.routing.renormalize = true;
  return h;
}
// Layers without rotation make their queries longer with the distance from the beginning.
Hyperparameters forward_llama4(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kLlama4Class);
  h.unit_heads = config.flag("use_qk_norm", true);
  const auto listed = config.numbers("no_rope_layers");
  const bool by_list = listed && !listed->empty();
  const std::uint64_t every = config.size("no_rope_layer_interval", 4).value();
  Hyperparameters::Temperature t = {.scale = config.real("attn_scale", 0.1, -1e6, 1e6),
                                    .floor = config.real("floor_scale", 8192, 1e-3, 1e12),
                                    .offset = 1};
  for (std::uint64_t i = 0; i < tree.layers; ++i) {
    const bool rotates = by_list ? (*listed)[i] != 0 : (i + 1) % every != 0;
    if (!rotates) h.rope_of.at(i).reset();
    t.layers.push_back(!rotates);
  }
  if (config.flag("attn_temperature_tuning", true)) h.temperature = t;
  return h;
}
Hyperparameters forward_mimo(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kMimoClass);
}
// Layers with a window have heads and a base of their own; the published config and transformers spell them apart.
Hyperparameters forward_mimo_v2(ConfigReader& config, const ModuleTree& tree) {
  // V2.5: releases in FP8 store the rows of the joined matrix rank by rank, which no key tells.
  config.require(config.text("attention_projection_layout", "split") == "split",
                 "attention_projection_layout is not split: MiMo is computed with matrices apart");
  const ParsedJson* ropes = object_in(config, "rope_parameters");
  const bool by_kind = ropes != nullptr && ropes->contains("sliding_attention");
  const RopeClass local = {.context = 131072,
                           .partial = true,
                           .part = 0.334,
                           .part_of_plain = true,
                           .theta_key = "swa_rope_theta"};
  ForwardClass of_class = {
      .epsilon = 1e-5,
      .rope = {.theta = 5e6, .context = 131072, .partial = true, .part = 0.334, .part_of_plain = true},
      .epsilon_key = "rms_norm_eps|layernorm_epsilon"};
  if (by_kind) of_class.layer_type = "full_attention";
  Hyperparameters h = read_forward(config, tree, of_class);
  const AttentionGeometry& last = tree.attention.back();  // those with a window, where there are any
  const AttentionGeometry& windowed =
      last.window == 0 && !tree.mtp_attention.empty() ? tree.mtp_attention.front() : last;
  h.ropes.push_back(read_rope(config, windowed.qk_head_dim, local, by_kind ? "sliding_attention" : ""));
  if (last.window != 0) {
    for (const std::uint64_t layer : last.layers) h.rope_of.at(layer) = 1;
  }
  for (const AttentionGeometry& g : tree.mtp_attention)  // all of them have the window
    h.rope_of.resize(h.rope_of.size() + g.layers.size(), 1);
  if (!config.is_null("attention_value_scale"))
    h.value_scale = config.real("attention_value_scale", 0.707, -1e6, 1e6);
  read_groups(config, tree, true, h);
  return h;
}
// The published config has rotary_dim, which the class does not read: half a head is what both say.
Hyperparameters forward_minimax_m2(ConfigReader& config, const ModuleTree& tree) {
  ForwardClass of_class = {.rope = {.theta = 5e6, .context = 196608, .partial = true}};
  if (config.has("rotary_dim") && !config.is_null("rotary_dim"))
    of_class.rope.part =
        config.real("rotary_dim", 0, 0, 1e6) / static_cast<double>(tree.attention.at(0).qk_head_dim);
  Hyperparameters h = read_forward(config, tree, of_class);
  h.routing.renormalize = true;
  return h;
}
Hyperparameters forward_olmoe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kOlmoeClass);
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  if (config.has("clip_qkv") && !config.is_null("clip_qkv")) h.clip_qkv = config.real("clip_qkv", 0, 0, 1e9);
  return h;
}
Hyperparameters forward_qwen2_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kQwen2MoeClass);
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  return h;
}
Hyperparameters forward_qwen2_vl(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kQwen2VlClass);
}
Hyperparameters forward_qwen2_5_vl(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kQwen2VlClass);
}
// Weights of the chosen experts always add up to 1, where there are any.
Hyperparameters forward_qwen3_vl(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kQwen3VlClass);
  h.routing.renormalize = true;
  return h;
}
Hyperparameters forward_solar_open(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kSolarClass);
  read_groups(config, tree, true, h);
  return h;
}

}  // namespace assay::families
