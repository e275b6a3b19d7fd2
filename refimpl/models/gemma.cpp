// Gemma 2 (arXiv 2408.00118) and Gemma 3 (arXiv 2503.19786): norms before and after attention and MLP, whose
// weight counts as 1 + w; embeddings × √hidden; GELU. Gemma 2 caps scores and logits; Gemma 3 norms q and k
// instead of capping scores (its class reads attn_logit_softcapping and leaves it at that), and its layers
// with a window rotate with a base of their own, unstretched.
#include <cmath>

#include "refimpl/models/rules.h"
#include "refimpl/models/settings.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

// null: no cap.
double read_cap(const ModelConfig& config, const std::string& key, double otherwise) {
  if (config_is_null(config, key)) return 0;
  return config_real(config, key, 1e-3, 1e6).value_or(otherwise);
}

// GGUF does not keep it: llama.cpp takes a head's width, but for the 27 B models, known by their depth.
double query_scalar(const Weights& weights) {
  const ModuleTree& tree = weights.tree();
  double otherwise = 256;
  if (weights.from_gguf()) {
    const AttentionGeometry& g = tree.attention.at(0);
    const bool is_27b = tree.layers == (tree.family == "gemma2" ? 46 : 62);
    otherwise = static_cast<double>(is_27b ? tree.hidden_size / g.heads : g.qk_head_dim);
  }
  return config_real(weights.config(), "query_pre_attn_scalar", 1e-3, 1e9).value_or(otherwise);
}

DecoderSettings read_gemma(const Weights& weights, const ModelOptions& options, const RopeClass& rope,
                           std::string_view layer_type = {}) {
  DecoderSettings settings = read_decoder_settings(weights, {.rope = rope,
                                                             .activation_key = "hidden_activation",
                                                             .activation = "gelu_pytorch_tanh",
                                                             .layer_type = layer_type});
  // The converter to GGUF has added the 1 already.
  settings.norm = weights.from_gguf() ? NormForm::weight_inside : NormForm::one_plus_weight;
  settings.embedding_scale = std::sqrt(static_cast<double>(weights.tree().hidden_size));
  settings.attention_scale = 1 / std::sqrt(query_scalar(weights));
  settings.moe = options.moe;
  return settings;
}

std::unique_ptr<LanguageModel> make_gemma2(const Weights& weights, const ModelOptions& options) {
  DecoderSettings settings = read_gemma(weights, options, {.context = 8192});
  settings.attention_cap = read_cap(weights.config(), "attn_logit_softcapping", 50);
  settings.final_cap = read_cap(weights.config(), "final_logit_softcapping", 30);
  return make_decoder(weights, settings);
}

constexpr RopeClass kGlobalRope = {.theta = 1e6, .context = 131072}, kLocalRope = {.context = 131072};

// transformers 5 gives each kind of layer its rope_parameters; before, rope_scaling meant the layers without
// a window, and rope_local_base_freq the others.
RopeRule local_rope(const Weights& weights, std::size_t head_dim) {
  RopeRule rule = read_rope(weights, head_dim, kLocalRope, "sliding_attention");
  const ParsedJson* by_kind = config_object(weights.config(), "rope_parameters");
  if (by_kind != nullptr && by_kind->contains("sliding_attention")) return rule;
  rule.type = RopeRule::Type::standard;
  rule.theta = config_real(weights.config(), "rope_local_base_freq", 1e-3, 1e15).value_or(10000);
  return rule;
}

std::unique_ptr<LanguageModel> make_gemma3(const Weights& weights, const ModelOptions& options) {
  DecoderSettings settings = read_gemma(weights, options, kGlobalRope, "full_attention");
  settings.final_cap = read_cap(weights.config(), "final_logit_softcapping", 0);
  const std::size_t head_dim = weights.tree().attention.at(0).qk_head_dim;
  settings.ropes.push_back(local_rope(weights, head_dim));
  for (const AttentionGeometry& geometry : weights.tree().attention) {
    for (const std::uint64_t layer : geometry.layers)
      settings.rope_of.at(layer) = geometry.window == 0 ? 0 : 1;
  }
  return make_decoder(weights, settings);
}

constexpr std::string_view kGemma2Families[] = {"gemma2"};
constexpr auto kGemma2Used = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_activation", "attention_bias", "query_pre_attn_scalar",
     "attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "layer_types"});
constexpr std::string_view kGemma3Families[] = {"gemma3"};
constexpr auto kGemma3Used =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_activation", "attention_bias",
                  "query_pre_attn_scalar", "final_logit_softcapping", "sliding_window", "layer_types",
                  "sliding_window_pattern", "_sliding_window_pattern", "rope_local_base_freq"});
// hidden_activation took hidden_act's place; sliding_window_size is published beside sliding_window.
constexpr std::string_view kGemma2Idle[] = {"hidden_act", "sliding_window_size"};
constexpr std::string_view kGemma3Idle[] = {"hidden_act", "attn_logit_softcapping"};
constexpr FixedKey kFixed[] = {{"use_bidirectional_attention", "false"}};

}  // namespace

const ModelRule kGemma2Rule = {kGemma2Families, {}, {kGemma2Used, kGemma2Idle, kFixed}, make_gemma2};
const ModelRule kGemma3Rule = {kGemma3Families, {}, {kGemma3Used, kGemma3Idle, kFixed}, make_gemma3};

}  // namespace assay
