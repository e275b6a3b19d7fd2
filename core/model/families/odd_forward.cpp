#include "core/model/families/odd_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/forward.h"

namespace assay::families {
namespace odd_forward {
namespace {

constexpr double kAnyNumber = 1e9;

// Layers that see the whole context do not rotate, but those that `keep` names.
template <class Keep>
void rotate_windows(const ModuleTree& tree, Hyperparameters& h, const Keep& keep) {
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      if (g.window == 0 && !keep(layer)) h.rope_of.at(layer).reset();
    }
  }
}

const ParsedJson* value_in(const ParsedJson* object, std::string_view key) {
  if (object == nullptr) return nullptr;
  const auto found = object->find(key);
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

}  // namespace
}  // namespace odd_forward

// Weights of the chosen experts always add up to route_scale.
Hyperparameters forward_afmoe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.epsilon = 1e-5, .rope = {.context = 16384}});
  odd_forward::rotate_windows(tree, h, [](std::uint64_t) { return false; });
  if (config.flag("mup_enabled", false)) h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  h.routing.renormalize = true;
  if (!config.is_null("route_scale"))
    h.routing.scale = config.real("route_scale", 1, -odd_forward::kAnyNumber, odd_forward::kAnyNumber);
  return h;
}

// RMS norms where rms_norm_eps is told, else LayerNorms. Dense layers in front may rotate though they see all.
Hyperparameters forward_cohere2_moe(ConfigReader& config, const ModuleTree& tree) {
  const bool rms = config.has("rms_norm_eps") && !config.is_null("rms_norm_eps");
  Hyperparameters h = read_forward(config, tree,
                                   {.epsilon = 1e-5,
                                    .rope = {.theta = 10000, .context = 8192},
                                    .epsilon_key = rms ? "rms_norm_eps" : "layer_norm_eps",
                                    .interleaved = true,
                                    .head_scale = {"logit_scale", 0.0625}});
  h.parallel_branches = true;
  const auto kinds = config.texts("mlp_layer_types");
  const std::uint64_t dense_first = config.number("first_k_dense_replace", 0);
  const bool dense_rotate = config.number("prefix_dense_sliding_window_pattern", 1) == 1;
  odd_forward::rotate_windows(tree, h, [&](std::uint64_t layer) {
    const bool dense = kinds ? layer < kinds->size() && (*kinds)[layer] == "dense" : layer < dense_first;
    return dense && dense_rotate;
  });
  h.routing.renormalize =
      config.text("expert_selection_fn", "softmax") == "sigmoid" && config.flag("norm_topk_prob", true);
  return h;
}

// The base stands in attn_config, where transformers 5 does not look.
Hyperparameters forward_dbrx(ConfigReader& config, const ModuleTree& tree) {
  using odd_forward::value_in;
  const ParsedJson *attention = object_in(config, "attn_config"), *mlp = object_in(config, "ffn_config");
  ForwardClass of_class = {.epsilon = 1e-5, .activation_key = "", .epsilon_key = ""};
  of_class.rope.context = config.number("max_seq_len", 2048);
  const ParsedJson* theta = value_in(attention, "rope_theta");
  if (theta != nullptr) of_class.rope.theta = config.to_real(*theta, "attn_config.rope_theta", 1e-3, 1e15);
  Hyperparameters h = read_forward(config, tree, of_class);
  config.require(theta == nullptr || h.ropes.front().theta == of_class.rope.theta,
                 "attn_config.rope_theta and rope_parameters.rope_theta differ");
  if (const ParsedJson* clip = value_in(attention, "clip_qkv"))
    h.clip_qkv = config.to_real(*clip, "attn_config.clip_qkv", 0, 1e9);
  if (const ParsedJson* act = value_in(mlp, "ffn_act_fn");
      act != nullptr && act->is_object() && act->contains("name"))
    h.activation = config.to_text(act->at("name"), "ffn_config.ffn_act_fn.name");
  const bool silent = mlp == nullptr || !mlp->contains("moe_normalize_expert_weights");
  const ParsedJson* power = value_in(mlp, "moe_normalize_expert_weights");
  config.require(power == nullptr || *power == 1.0,
                 "ffn_config.moe_normalize_expert_weights is not 1: another norm is not computed here");
  h.routing.renormalize = silent || power != nullptr;
  return h;
}

}  // namespace assay::families
