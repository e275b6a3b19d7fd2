// Sources: the code that is published beside the weights, whose classes' defaults these are.
#include "core/model/families/hub_forward.h"

#include "core/model/families/forward.h"

namespace assay::families {
namespace {

constexpr double kMostOfAnyLayer = 1e9;

}  // namespace

// Qwen2's defaults, whose configuration class it takes.
Hyperparameters forward_bagel(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 32768}});
}

// Linear biases; two names for each factor, of which the older counts.
Hyperparameters forward_jais(ConfigReader& config, const ModuleTree& tree) {
  config.require(config.text("position_embedding_type", "learned") == "alibi",
                 "position_embedding_type is not alibi: such JAIS is counted, and not computed");
  Hyperparameters h = read_forward(config, tree,
                                   {.epsilon = 1e-5,
                                    .rope = {.context = 1024},
                                    .activation_key = "activation_function",
                                    .activation = "gelu_new",
                                    .epsilon_key = "layer_norm_epsilon",
                                    .rotates = false});
  if (h.activation == "swiglu") h.activation = "silu";
  h.alibi_exponent = 8;
  const auto factor = [&](std::string_view key) {
    return config.real(key, 1, -kMostOfAnyLayer, kMostOfAnyLayer);
  };
  h.embedding_scale = factor(config.has("embeddings_scale") ? "embeddings_scale" : "mup_embeddings_scale");
  h.head_scale = config.has("width_scale") ? factor("width_scale")
                                           : factor("mup_output_alpha") * factor("mup_width_scale");
  const bool by_width = config.has("scale_qk_dot_by_d") ? config.flag("scale_qk_dot_by_d", false)
                                                        : config.flag("mup_scale_qk_dot_by_d", false);
  if (by_width) h.attention_scale = 1 / static_cast<double>(tree.attention.at(0).qk_head_dim);
  return h;
}

Hyperparameters forward_minimind(ConfigReader& config, const ModuleTree& tree) {
  const bool old = config.config().architecture() == "MiniMindLM" ||
                   config.has("n_layers|n_routed_experts|n_shared_experts");
  config.require(!old, "MiniMind 2 and older are counted, and not computed");
  Hyperparameters h = read_forward(config, tree, {.rope = {.theta = 1e6, .context = 32768}});
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}

// Its configuration class is not at hand; heads are told apart in pairs, and what pairs of fewer key heads mean no source at hand
// tells alike.
Hyperparameters forward_motif(ConfigReader& config, const ModuleTree& tree) {
  for (const char* key : {"rms_norm_eps", "attn_rms_norm_eps", "rope_theta", "max_position_embeddings"})
    config.require(config.has(key),
                   std::string(key) + " is not there, and its class's default is not known here");
  const AttentionGeometry& g = tree.attention.at(0);
  config.require(
      g.heads == g.kv_heads && g.heads % 2 == 0,
      "num_attention_heads is odd, or not num_key_value_heads: such Motifs are counted, and not computed");
  Hyperparameters h = read_forward(config, tree, {});
  h.activation = "silu";  // PolyNorm, for which this is no word
  return h;
}

// No key tells ε; frequencies are computed for as many positions as a text has, whatever rope_max_length says.
Hyperparameters forward_openelm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree,
                                   {.rope = {.theta_key = "rope_freq_constant"},
                                    .activation_key = "activation_fn_name",
                                    .activation = "swish"});
  h.context = config.size("max_context_length", 2048).value();
  return h;
}

Hyperparameters forward_phi3_small(ConfigReader& config, const ModuleTree& tree) {
  config.require(config.text("hidden_act", "gegelu") == "gegelu", "hidden_act is not gegelu");
  config.require(config.real("rope_position_scale", 1, 0, kMostOfAnyLayer) == 1,
                 "rope_position_scale is not 1");
  Hyperparameters h =
      read_forward(config, tree,
                   {.epsilon = 1e-5,
                    .rope = {.theta = 1e6, .context = 8192, .theta_key = "rope_embedding_base"},
                    .epsilon_key = "layer_norm_epsilon",
                    .embedding_scale = {"mup_embedding_multiplier", 10},
                    .head_divisor = {"mup_width_multiplier", 8}});
  h.activation = "silu";  // a unit of its own, for which this is no word
  h.activation_limit = config.real("gegelu_limit", 20, 0, kMostOfAnyLayer);
  if (config.flag("mup_use_scaling", true))
    h.attention_scale = config.real("mup_attn_multiplier", 1, -kMostOfAnyLayer, kMostOfAnyLayer) /
                        static_cast<double>(tree.attention.at(0).qk_head_dim);
  return h;
}

// A state has no end; max_position_embeddings is how long the texts of training were.
Hyperparameters forward_rwkv7(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree, {.epsilon = 1e-5, .activation_key = {}, .epsilon_key = "norm_eps", .rotates = false});
  h.context = std::size_t{1} << 20U;
  return h;
}

}  // namespace assay::families
