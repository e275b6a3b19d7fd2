#include "core/model/families/soft_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/model/families/forward.h"

namespace assay::families {
namespace {

constexpr double kLargest = 1e9;

const ParsedJson* rope_object(const ConfigReader& config) {
  const ParsedJson* rope = object_in(config, "rope_scaling");
  return rope == nullptr || rope->empty() ? object_in(config, "rope_parameters") : rope;
}
double number_in(const ConfigReader& config, const ParsedJson* object, std::string_view key,
                 double otherwise) {
  if (object == nullptr) return otherwise;
  const auto found = object->find(key);
  return found == object->end() || found->is_null() ? otherwise
                                                    : config.to_real(*found, key, -kLargest, 1e15);
}

// An element of a list with one for each layer, or the number that stands for all of them.
double of_layer(const ConfigReader& config, std::string_view key, std::uint64_t layer, double otherwise) {
  const ParsedJson& text = config.config().text();
  const auto found = text.find(key);
  if (found == text.end() || found->is_null() || (found->is_array() && found->empty())) return otherwise;
  if (!found->is_array()) return config.to_real(*found, key, -kLargest, 1e15);
  config.require(layer < found->size(), fmt::format("{} has no entry for layer {}", key, layer));
  return (*found)[layer].is_null() ? otherwise : config.to_real((*found)[layer], key, -kLargest, 1e15);
}

constexpr std::size_t kStepContext = 128000;

// The ropes of Step's two kinds of layers: told by kinds, or by lists, of which the first layer of a kind is asked;
// rope_scaling is of layers that see all.
RopeRule step_rope(const ConfigReader& config, const AttentionGeometry& g) {
  const bool full = g.window == 0;
  const std::string_view kind = full ? "full_attention" : "sliding_attention";
  const ParsedJson* by_kind = object_in(config, "rope_parameters");
  if (by_kind != nullptr && by_kind->contains(kind))
    return read_rope(config, g.qk_head_dim, {.context = kStepContext, .partial = true}, kind);
  const RopeClass of_lists = {.theta = of_layer(config, "rope_theta", g.layers.front(), 10000),
                              .context = kStepContext,
                              .partial = true,
                              .part = of_layer(config, "partial_rotary_factors", g.layers.front(), 1),
                              .part_keys = "partial_rotary_factor_of_all",
                              .theta_key = "rope_theta_of_all"};
  const auto number = [](double x) { return x >= 0 && x <= 1; };
  config.require(number(of_lists.part) && of_lists.theta > 0,
                 "rope_theta or partial_rotary_factors are no numbers for that");
  RopeRule rule = read_rope(config, g.qk_head_dim, of_lists, "");
  if (!full) rule.type = RopeRule::Type::standard;
  return rule;
}

// Layers of prediction rotate as the main ones that look as far, of which lists tell whether they have more entries or not.
void rotate_prediction(const ConfigReader& config, const ModuleTree& tree, Hyperparameters& h) {
  for (const AttentionGeometry& g : tree.mtp_attention) {
    const auto like = std::find_if(tree.attention.begin(), tree.attention.end(),
                                   [&](const AttentionGeometry& main) { return main.window == g.window; });
    if (like == tree.attention.end()) h.ropes.push_back(step_rope(config, g));
    const std::optional<std::size_t> rope =
        like == tree.attention.end() ? h.ropes.size() - 1 : h.rope_of.at(like->layers.front());
    h.rope_of.resize(h.rope_of.size() + g.layers.size(), rope);
  }
}

}  // namespace

void read_choice(ConfigReader& config, const ModuleTree& tree, std::uint64_t groups, std::uint64_t chosen,
                 double scale, Hyperparameters& h) {
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  if (!config.is_null("routed_scaling_factor"))
    h.routing.scale = config.real("routed_scaling_factor", scale, -kLargest, kLargest);
  h.routing.groups = config.number("n_group", groups);
  h.routing.chosen_groups = config.number("topk_group", chosen);
  config.require(h.routing.groups > 0 && h.routing.chosen_groups > 0 &&
                     h.routing.chosen_groups <= h.routing.groups && tree.experts % h.routing.groups == 0 &&
                     tree.experts_per_token <= tree.experts / h.routing.groups * h.routing.chosen_groups,
                 "n_group and topk_group do not fit together, or not the number of experts");
}

// Without a word of ropes, Llama 3's of the published model.
Hyperparameters forward_apertus(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kClass = {
      .epsilon = 1e-5, .rope = {.theta = 12e6, .context = 65536}, .activation = "xielu"};
  Hyperparameters h = read_forward(config, tree, kClass);
  const ParsedJson* older = object_in(config, "rope_scaling");
  if (object_in(config, "rope_parameters") == nullptr && (older == nullptr || older->empty())) {
    RopeRule& rule = h.ropes.front();
    rule.type = RopeRule::Type::llama3;
    rule.theta = kClass.rope.theta;  // whatever rope_theta says
    rule.factor = 8;
    rule.original_context = 8192;
  }
  return h;
}

// Layers that see the whole context do not rotate, where there are windows at all; DeepSeek-V3's way of choosing.
Hyperparameters forward_exaone_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.epsilon = 1e-5});
  const bool windows = !config.is_null("sliding_window") && config.number("sliding_window", 4096) != 0;
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      if (windows && g.window == 0) h.rope_of.at(layer).reset();
    }
  }
  read_choice(config, tree, 1, 1, 2.5, h);
  return h;
}

Hyperparameters forward_hy3(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 11158840, .context = 131072}});
  h.routing.renormalize = true;
  h.routing.scale = config.real("router_scaling_factor", 2.826, -kLargest, kLargest);
  return h;
}

// A base for each kind of layer.
Hyperparameters forward_mellum(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree, {.rope = {.theta = 500000, .context = 131072}, .layer_type = "full_attention"});
  h.ropes.push_back(read_rope(config, tree.attention.at(0).qk_head_dim,
                              {.theta = 10000, .context = 131072, .theta_key = "rope_theta_of_all"},
                              "sliding_attention"));
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = g.window == 0 ? 0 : 1;
  }
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}

// Ling 1's softmax and Ling 2's way of choosing, which is DeepSeek-V3's.
Hyperparameters forward_ling(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 32768}});
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}
Hyperparameters forward_ling2(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.theta = 600000, .context = 32768, .partial = true, .part = 0.5}});
  read_choice(config, tree, 8, 4, 2.5, h);
  return h;
}

Hyperparameters forward_ling3(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.theta = 600000, .context = 32768}, .interleaved = true});
  read_choice(config, tree, 8, 4, 1, h);
  return h;
}

// Latent attention whose queries grow with the length, as Llama 4's; YaRN where the config has no word of ropes.
Hyperparameters forward_mistral4(ConfigReader& config, const ModuleTree& tree) {
  constexpr std::size_t kContext = 1 << 20;
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = kContext}, .rotates = false});
  const AttentionGeometry& g = tree.attention.at(0);
  const double part = static_cast<double>(g.rope_head_dim) / static_cast<double>(g.qk_head_dim);
  RopeRule rule = read_rope(config, g.qk_head_dim, {.context = kContext, .partial = true, .part = part}, "");
  config.require(rule.rotary_dim == g.rope_head_dim,
                 "partial_rotary_factor is not qk_rope_head_dim's part of a head");
  const ParsedJson* rope = rope_object(config);
  Hyperparameters::Temperature t = {.scale = 0.1, .floor = 8192};
  if (rope == nullptr || rope->empty()) {
    rule.type = RopeRule::Type::yarn;
    rule.theta = 10000;
    rule.factor = 128;
    rule.original_context = 8192;
    rule.mscale = rule.mscale_all_dim = 1;
  } else {
    t = {.scale = number_in(config, rope, "llama_4_scaling_beta", 0),
         .floor = number_in(config, rope, "original_max_position_embeddings", 0)};
    config.require(t.scale == 0 || t.floor > 0,
                   "llama_4_scaling_beta needs rope_parameters.original_max_position_embeddings");
  }
  h.ropes = {rule};
  h.rope_of.assign(tree.layers, 0);
  h.context = rule.context;
  h.interleaved_pairs = config.is_null("rope_interleave") ? false : config.flag("rope_interleave", true);
  if (t.scale != 0) h.temperature = t;
  read_choice(config, tree, 1, 1, 1, h);
  return h;
}

// Its temperature may begin at another length than YaRN's.
Hyperparameters forward_mistral_large3(ConfigReader& config, const ModuleTree& tree) {
  config.require(config.has("rope_parameters") && config.has("rms_norm_eps"),
                 "rope_parameters or rms_norm_eps is not there, which its class leaves to none");
  Hyperparameters h = forward_mistral4(config, tree);
  const double floor = number_in(config, rope_object(config), "llama_4_scaling_floor", 0);
  if (h.temperature && floor > 0) h.temperature->floor = floor;
  return h;
}

// The published config has rotary_dim, which the class does not read.
Hyperparameters forward_minimax_m3(ConfigReader& config, const ModuleTree& tree) {
  RopeClass rope = {.theta = 5e6, .context = 524288, .partial = true};
  if (config.has("rotary_dim"))
    rope.part =
        config.real("rotary_dim", 0, 0, kLargest) / static_cast<double>(tree.attention.at(0).qk_head_dim);
  Hyperparameters h = read_forward(config, tree, {.rope = rope, .activation_key = {}});
  h.routing.renormalize = true;
  h.routing.scale = config.real("routed_scaling_factor", 2, -kLargest, kLargest);
  return h;
}

// Its longrope scales cos and sin by numbers of the config, which are one in what is published.
Hyperparameters forward_phimoe(ConfigReader& config, const ModuleTree& tree) {
  config.require(tree.experts_per_token == 2, "num_experts_per_tok is not 2: SparseMixer chooses two");
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 131072}});
  RopeRule& rule = h.ropes.front();
  if (rule.type == RopeRule::Type::standard) return h;
  const ParsedJson* rope = rope_object(config);
  const double shorter = number_in(config, rope, "short_mscale", 0),
               longer = number_in(config, rope, "long_mscale", 0);
  config.require(rule.type == RopeRule::Type::longrope && shorter > 0 && shorter == longer,
                 "rope is not longrope, or short_mscale and long_mscale are not one positive number");
  rule.attention_factor = shorter;
  return h;
}

Hyperparameters forward_step3p5(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.context = kStepContext}, .rotates = false});
  h.rope_of.assign(tree.layers, 0);
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = h.ropes.size();
    h.ropes.push_back(step_rope(config, g));
  }
  rotate_prediction(config, tree, h);
  if (config.has("query_pre_attn_scalar"))
    h.attention_scale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 1, 1e-3, kLargest));
  h.routing.renormalize = true;
  h.routing.scale = config.real("moe_router_scaling_factor", 1, -kLargest, kLargest);
  return h;
}

}  // namespace assay::families
