// Sources: the configuration and modeling code that is published beside the weights; vLLM 0.32's classes, where that code is
// not at hand (Orion, Rnj-1, openPangu Ultra MoE).
#include "core/model/families/own_code_forward.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/forward.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

constexpr double kMostOfAny = 1e9;

// Of classes whose defaults no source tells.
void require_said(const ConfigReader& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    config.require(config.has(key) && !config.is_null(key),
                   fmt::format("{} is not there, and its class's default is not known here", key));
}

bool says_ropes(const ConfigReader& config) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const ParsedJson* object = object_in(config, key);
    if (object != nullptr && !object->empty()) return true;
  }
  return false;
}

}  // namespace

// vLLM's class is the Llama's; the configuration's defaults are not at hand.
Hyperparameters forward_aquila(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "max_position_embeddings"});
  return read_forward(config, tree, {});
}

// A softmax over all experts; the weights of the chosen add up to 1 only where the config says so.
Hyperparameters forward_deepseek_v1(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {});
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  return h;
}

Hyperparameters forward_exaone3(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree,
                      {.epsilon = 1e-5,
                       .activation_key = "activation_function",
                       .epsilon_key = "layer_norm_epsilon|rms_norm_eps"});
}

// The base stands under `rotary`; its "dynamic" stretches it behind max_position_embeddings alone, which is as far as texts are
// read here.
Hyperparameters forward_internlm1(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {});
  const ParsedJson* rotary = object_in(config, "rotary");
  if (rotary == nullptr) return h;
  config.require(!says_ropes(config) && !config.has("rope_theta"),
                 "rotary is there beside rope_theta or rope_scaling: which of them counts is not known");
  const auto type = rotary->find("type"), base = rotary->find("base");
  config.require(type == rotary->end() || *type == "dynamic" || *type == "origin",
                 "rotary.type is neither dynamic nor origin");
  if (base == rotary->end()) return h;
  config.require(base->is_number() && base->get<double>() > 0 && base->get<double>() < 1e12,
                 "rotary.base is no number that angles can be made of");
  h.ropes.front().theta = base->get<double>();
  return h;
}

Hyperparameters forward_internlm3(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 32768}});
}

Hyperparameters forward_iquestcoder(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 500000, .context = 16384}});
}

// Of a head the first pairs rotate, i with i + half of the head, by frequencies of the part that rotates.
Hyperparameters forward_k2_horizon(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "max_position_embeddings"});
  config.require(says_ropes(config) || config.has("rope_theta"),
                 "rope_theta is not there, and its class's default is not known here");
  Hyperparameters h = read_forward(config, tree, {});
  RopeRule& rule = h.ropes.front();
  const std::uint64_t part = config.number("rope_head_dim", rule.rotary_dim);
  if (part != 0 && part != rule.rotary_dim) {
    config.require(part % 2 == 0 && part < rule.rotary_dim, "rope_head_dim is no even part of a head");
    config.require(rule.type == RopeRule::Type::standard,
                   "rope_scaling is there beside a rope_head_dim, which is not computed here");
    rule.type = RopeRule::Type::proportional;
    rule.factor = 1;
    rule.moving_pairs = part / 2;
    rule.theta = std::pow(rule.theta, static_cast<double>(rule.rotary_dim) / static_cast<double>(part));
  }
  if (tree.experts == 0) return h;
  require_said(config, {"norm_topk_prob", "router_scaling_factor", "router_score_func"});
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  h.routing.scale = config.real("router_scaling_factor", 1, -kMostOfAny, kMostOfAny);
  return h;
}

// A Llama's defaults: transformers' class derives from that.
Hyperparameters forward_kormo(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {});
}

// Latent attention rotates pairs in its own part; lightning attention a part of a head, by the last of the ropes.
Hyperparameters forward_ling25(ConfigReader& config, const ModuleTree& tree) {
  constexpr RopeClass kRope = {.theta = 600000, .context = 32768};
  Hyperparameters h = read_forward(config, tree, {.rope = kRope, .interleaved = true});
  RopeClass of_linear = kRope;
  of_linear.partial = true;
  h.ropes.push_back(read_rope(config, config.size("head_dim", 128).value(), of_linear));
  h.context = h.ropes.back().context;
  read_choice(config, tree, 8, 4, 2.5, h);
  return h;
}

// All layers rotate the same part of a head.
Hyperparameters forward_ring_linear(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.theta = 600000, .context = 32768, .partial = true}});
  config.require(config.number("rotary_dim", h.ropes.back().rotary_dim) == h.ropes.back().rotary_dim,
                 "rotary_dim is not head_dim times partial_rotary_factor");
  read_choice(config, tree, 8, 4, 2.5, h);
  return h;
}

// Class defaults as the tree has them: a Llama's.
Hyperparameters forward_nanbeige(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {});
}

// Scores have a bias of the distance, and nothing rotates; max_seq_len is the context.
Hyperparameters forward_step1(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "tie_word_embeddings"});
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.context = 32768}, .activation_key = {}, .rotates = false});
  if (config.has("max_seq_len") && !config.has("max_position_embeddings"))
    h.context = config.size("max_seq_len").value();
  h.alibi_exponent = 8;
  return h;
}

Hyperparameters forward_orion(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "max_position_embeddings"});
  return read_forward(config, tree, {});
}

Hyperparameters forward_pangu_embedded(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 16e6, .context = 32768}});
}

// vLLM's class leaves rope_scaling aside: no published model has one.
Hyperparameters forward_pangu_ultra(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "max_position_embeddings", "rope_theta", "norm_topk_prob",
                        "routed_scaling_factor"});
  config.require(!says_ropes(config), "rope_scaling is there: openPangu Ultra MoE is computed without");
  Hyperparameters h = read_forward(config, tree, {.interleaved = true});
  read_choice(config, tree, 1, 1, 1, h);
  config.require(h.routing.groups == 1, "n_group is not 1: the class has one group");
  return h;
}

Hyperparameters forward_param2(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.theta = 600000, .context = 32768, .partial = true}});
  read_choice(config, tree, 8, 4, 1, h);
  return h;
}

// YaRN is told by keys of its own, and is of layers that see everything; those with a window rotate by another base.
Hyperparameters forward_plamo3(ConfigReader& config, const ModuleTree& tree) {
  const ParsedJson* ropes = object_in(config, "rope_parameters");
  const bool by_kind =
      ropes != nullptr && (ropes->contains("full_attention") || ropes->contains("sliding_attention"));
  if (!by_kind) require_said(config, {"rope_theta", "rope_local_theta"});  // of which two releases differ
  const RopeClass local = {.theta = 10000, .theta_key = "rope_local_theta"};
  Hyperparameters h =
      read_forward(config, tree,
                   {.activation_key = {},
                    .layer_type = by_kind ? std::string_view("full_attention") : std::string_view()});
  RopeRule& rule = h.ropes.front();
  const double factor =
      config.is_null("rope_scaling_factor") ? 1 : config.real("rope_scaling_factor", 1, 1e-6, kMostOfAny);
  if (!by_kind && factor != 1) {
    require_said(config, {"initial_context_length"});
    rule.type = RopeRule::Type::yarn;
    rule.factor = factor;
    rule.original_context = config.number("initial_context_length", 0);
    rule.truncate = false;
    config.require(rule.original_context > 0, "initial_context_length is 0");
  }
  h.ropes.push_back(
      read_rope(config, tree.attention.at(0).qk_head_dim, local, by_kind ? "sliding_attention" : ""));
  for (const AttentionGeometry& g : tree.attention)
    for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = g.window == 0 ? 0 : 1;
  return h;
}

// Gemma 3's scales, with one rope.
Hyperparameters forward_rnj1(ConfigReader& config, const ModuleTree& tree) {
  for (const AttentionGeometry& g : tree.attention)
    config.require(g.window == 0,
                   "layer_types has chunked_attention, which no published model has: such "
                   "layers are not computed here");
  const ParsedJson* ropes = object_in(config, "rope_parameters");
  const bool by_kind = ropes != nullptr && ropes->contains("full_attention");
  Hyperparameters h =
      read_forward(config, tree,
                   {.rope = {.theta = 1e6, .context = 131072},
                    .activation_key = "hidden_activation|hidden_act",
                    .activation = "gelu_pytorch_tanh",
                    .layer_type = by_kind ? std::string_view("full_attention") : std::string_view()});
  h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  h.attention_scale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 256, 1e-3, kMostOfAny));
  if (!config.is_null("final_logit_softcapping"))
    h.final_cap = config.real("final_logit_softcapping", 0, 0, kMostOfAny);
  return h;
}

// Without a word of ropes, the class's YaRN.
Hyperparameters forward_sarvam_mla(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 4096}, .interleaved = true});
  if (!says_ropes(config)) {
    RopeRule& rule = h.ropes.front();
    rule.type = RopeRule::Type::yarn;
    rule.factor = 40;
    rule.original_context = 4096;
    rule.mscale = rule.mscale_all_dim = 1;
  }
  h.routing.method = ExpertRouting::Method::noaux_tc;
  read_choice(config, tree, 1, 1, 2.5, h);
  return h;
}

Hyperparameters forward_sarvam_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 4096}});
  read_choice(config, tree, 1, 1, 2.5, h);
  return h;
}

// vLLM looks at sliding_window, which came with the model that this was made of, and its own code is not at hand: texts are read as
// far as both agree.
Hyperparameters forward_solar(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {});
  const std::uint64_t window = config.is_null("sliding_window") ? 0 : config.number("sliding_window", 2047);
  RopeRule& rule = h.ropes.front();
  if (window == 0 || window >= rule.context) return h;
  config.require(rule.type == RopeRule::Type::standard,
                 "rope_scaling is there beside a sliding_window that is shorter than the context");
  h.context = rule.context = window;
  return h;
}

// The published code stretches the base once and for all where the model was trained on longer texts than it began with:
// θ · α^(d / (d - 2)), α = 2^⌈log₂(training / base) + 1⌉ - 1; and anew, with other scales, behind training_seqlen, which is as
// far as texts are read here. vLLM does neither.
Hyperparameters forward_telechat2(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .epsilon_key = "layer_norm_epsilon|rms_norm_eps"});
  const double base = config.real("base_seqlen", 8192, 1, kMostOfAny),
               trained = config.real("training_seqlen", 8192, 1, kMostOfAny);
  RopeRule& rule = h.ropes.front();
  config.require(rule.type == RopeRule::Type::standard,
                 "rope_scaling is there: TeleChat 2 is computed without");
  const double alpha = std::max(1.0, std::exp2(std::ceil(std::log2(trained / base) + 1)) - 1);
  const auto width = static_cast<double>(rule.rotary_dim);
  config.require(alpha == 1 || width > 2, "heads of two elements cannot be stretched");
  if (alpha != 1) rule.theta *= std::pow(alpha, width / (width - 2));
  rule.context = rule.original_context = static_cast<std::size_t>(trained);
  h.context = rule.context;
  return h;
}

Hyperparameters forward_telechat3(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 1e6}});
}

// µP: the embedding × input_mult, logits × output_mult / mup_scale_factor.
Hyperparameters forward_teleflm(ConfigReader& config, const ModuleTree& tree) {
  require_said(config, {"rms_norm_eps", "max_position_embeddings", "use_mup"});
  Hyperparameters h = read_forward(config, tree, {});
  if (!config.flag("use_mup", false)) return h;
  require_said(config, {"input_mult", "output_mult", "mup_scale_factor"});
  const auto real = [&](std::string_view key) { return config.real(key, 1, -kMostOfAny, kMostOfAny); };
  config.require(real("mup_scale_factor") != 0, "mup_scale_factor is 0");
  h.embedding_scale = real("input_mult");
  h.head_scale = real("output_mult") / real("mup_scale_factor");
  return h;
}

Hyperparameters forward_xverse(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 8192}});
}

}  // namespace assay::families
