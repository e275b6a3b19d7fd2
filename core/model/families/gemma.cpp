// Gemma 1, 2 and 3 (text): tied embeddings, wide heads. Gemma 2 has four norms a layer and a window in every
// other layer; Gemma 3 adds norms on q and k and looks at a window in five layers of six.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/gemma.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

HeadAttention gemma_attention(ConfigReader& config, const Decoder& d) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  return a;
}

void describe_gemma(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 256000,
                                  .hidden = 3072,
                                  .intermediate = 24576,
                                  .layers = 28,
                                  .heads = 16,
                                  .kv_heads = 16,
                                  .head_dim = 256,
                                  .tied = true});
  const HeadAttention a = gemma_attention(config, d);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// `full_every`: one layer of so many sees the whole context.
void add_gemma2_layers(ConfigReader& config, ModuleTree& tree, const Decoder& d, const HeadAttention& a,
                       const std::string& prefix, std::uint64_t full_every) {
  Module layer = layers(prefix + "model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "pre_feedforward_layernorm", d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm", d.hidden, Role::post_feedforward_norm);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer},
            {.embedding = prefix + "model.embed_tokens",
             .final_norm = prefix + "model.norm",
             .head = prefix + "lm_head"});
  const auto window = config.optional_number("sliding_window", 4096);
  const auto windowed = windowed_layers(
      config, d.layers, [&](std::uint64_t i) { return window.has_value() && (i + 1) % full_every != 0; });
  config.require(windowed.empty() || window, "layer_types names windows, and sliding_window is null");
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

void describe_gemma2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 256000,
                                  .hidden = 2304,
                                  .intermediate = 9216,
                                  .layers = 26,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_dim = 256,
                                  .tied = true});
  add_gemma2_layers(config, tree, d, gemma_attention(config, d), "", 2);
}

void describe_gemma3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 262208,
                                  .hidden = 2304,
                                  .intermediate = 9216,
                                  .layers = 26,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_dim = 256,
                                  .tied = true});
  HeadAttention a = gemma_attention(config, d);
  a.qk_norm = QkNorm::per_head;
  const bool nested = !config.config().nested_in().empty();
  const std::uint64_t pattern = config.size("sliding_window_pattern|_sliding_window_pattern", 6).value();
  add_gemma2_layers(config, tree, d, a, nested ? "language_model." : "", pattern);
  if (!nested) return;
  tree.aliases.push_back(
      {"language_model.model.", "model.language_model."});  // saved by transformers 4.52 and later
  tree.aliases.push_back({"language_model.lm_head.", "lm_head."});
  add_siglip_vision(config, tree, d.hidden);
}

// null: no cap.
double read_cap(const ConfigReader& config, std::string_view key, double class_default) {
  return config.is_null(key) ? 0 : config.real(key, class_default, 1e-3, 1e6);
}

// query_pre_attn_scalar, which a GGUF does not keep: llama.cpp takes a head's width, but for the 27 B models,
// known by their depth.
double query_scalar(const ConfigReader& config, const ModuleTree& tree, std::uint64_t layers_of_27b) {
  double otherwise = 256;
  if (is_gguf(config)) {
    const AttentionGeometry& g = tree.attention.at(0);
    const bool is_27b = tree.layers == layers_of_27b;
    otherwise = static_cast<double>(is_27b ? tree.hidden_size / g.heads : g.qk_head_dim);
  }
  return config.real("query_pre_attn_scalar", otherwise, 1e-3, 1e9);
}

Hyperparameters read_gemma(ConfigReader& config, const ModuleTree& tree, const RopeClass& rope,
                           std::string_view layer_type, std::uint64_t layers_of_27b) {
  Hyperparameters h = read_forward(config, tree,
                                   {.rope = rope,
                                    .activation_key = "hidden_activation",
                                    .activation = "gelu_pytorch_tanh",
                                    .layer_type = layer_type});
  h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  h.attention_scale = 1 / std::sqrt(query_scalar(config, tree, layers_of_27b));
  return h;
}

Hyperparameters read_gemma2(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_gemma(config, tree, {.context = 8192}, {}, 46);
  h.attention_cap = read_cap(config, "attn_logit_softcapping", 50);
  h.final_cap = read_cap(config, "final_logit_softcapping", 30);
  return h;
}

// transformers 5 gives each kind of layer its rope_parameters; before, rope_scaling meant the layers without
// a window, and rope_local_base_freq the others.
RopeRule read_local_rope(const ConfigReader& config, std::size_t head_dim, std::size_t context) {
  RopeRule rule = read_rope(config, head_dim, {.context = context}, "sliding_attention");
  const ParsedJson* by_kind = object_in(config, "rope_parameters");
  if (by_kind != nullptr && by_kind->contains("sliding_attention")) return rule;
  rule.type = RopeRule::Type::standard;
  rule.theta = config.real("rope_local_base_freq", 10000, 1e-3, 1e15);
  return rule;
}

// Layers with a window rotate by a base of their own.
void add_local_rope(const ConfigReader& config, const ModuleTree& tree, std::size_t context,
                    Hyperparameters& h) {
  h.ropes.push_back(read_local_rope(config, tree.attention.at(0).qk_head_dim, context));
  for (const AttentionGeometry& geometry : tree.attention) {
    for (const std::uint64_t layer : geometry.layers) h.rope_of.at(layer) = geometry.window == 0 ? 0 : 1;
  }
}

// The class reads attn_logit_softcapping and leaves it at that.
Hyperparameters read_gemma3(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_gemma(config, tree, {.theta = 1e6, .context = 131072}, "full_attention", 62);
  h.final_cap = read_cap(config, "final_logit_softcapping", 0);
  add_local_rope(config, tree, 131072, h);
  return h;
}

constexpr std::string_view kGemmaArchitectures[] = {"GemmaForCausalLM"};
constexpr std::string_view kGemmaTypes[] = {"gemma"};
constexpr std::string_view kGemma2Architectures[] = {"Gemma2ForCausalLM"};
constexpr std::string_view kGemma2Types[] = {"gemma2"};
constexpr std::string_view kGemma3Architectures[] = {"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"};
constexpr std::string_view kGemma3Types[] = {"gemma3", "gemma3_text"};

}  // namespace

Hyperparameters forward_gemma3n(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_gemma(config, tree, {.theta = 1e6, .context = 32768}, "full_attention", tree.layers + 1);
  h.attention_scale = 1;
  h.final_cap = read_cap(config, "final_logit_softcapping", 30);
  add_local_rope(config, tree, 32768, h);
  return h;
}

const Family kGemma = {"gemma",     "Gemma (1)",    kGemmaArchitectures, kGemmaTypes,
                       kGemmaTypes, describe_gemma, forward_gemma};
const Family kGemma2 = {"gemma2",     "Gemma 2",       kGemma2Architectures, kGemma2Types,
                        kGemma2Types, describe_gemma2, read_gemma2};
const Family kGemma3 = {"gemma3",     "Gemma 3",       kGemma3Architectures, kGemma3Types,
                        kGemma3Types, describe_gemma3, read_gemma3};

}  // namespace assay::families
