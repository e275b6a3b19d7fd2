// Draft models over other layers than a Qwen3's: DSpark of Gemma 4, with an embedding of its own, and of Kimi K3, whose
// layers keep latents. Sources: vLLM 0.33's gemma4_dspark.py and kimi_k3/nvidia/dspark_mla.py. Held to no published total.
#include <algorithm>

#include "core/model/families/all_kin.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/draft_config.h"
#include "core/model/families/draft_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

Quantity listed_states(ConfigReader& config, const ModelConfig& where, const char* key) {
  const auto count = entries_of(where, key);
  config.require(count.has_value(), std::string(key) + " is not there: of how many layers states enter");
  return {key, *count};
}

void add_scores(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const Quantity rank = config.size("markov_rank");
  tree.modules.push_back(scores_of_next(config, d, config.size("draft_vocab_size", d.vocabulary), rank));
  if (!config.flag("enable_confidence_head", false)) return;
  const bool joined = config.flag("confidence_head_with_markov", false);
  tree.modules.push_back(draft_sureness(joined ? d.hidden + rank : d.hidden));
}

// Gemma 4's layers that see all, with keys and values of their own; of which values may be the keys.
void describe_gemma4_dspark(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_draft(config, tree);
  d.tied = tree.tied_embeddings = config.tied_embeddings(true);
  if (const auto types = layer_texts(config, "layer_types", d.layers))
    config.require(std::all_of(types->begin(), types->end(),
                               [](const std::string& type) { return type == "full_attention"; }),
                   "layer_types names other layers than full_attention");
  config.require(!config.flag("enable_moe_block", false), "enable_moe_block is true");
  const bool keys_are_values = config.flag("attention_k_eq_v", false);
  HeadAttention a = d.attention();
  a.head_dim = config.size("global_head_dim", d.head_dim);
  if (keys_are_values) a.kv_heads = config.size("num_global_key_value_heads", d.kv_heads);
  config.require_divides(a.kv_heads, a.heads);
  a.has_v = !keys_are_values;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  Module enters{"", "what enters", {}, {}, {}};
  add_linear(enters, {.name = "fc",
                      .in = d.hidden * listed_states(config, config.config(), "target_layer_ids"),
                      .out = d.hidden,
                      .role = Role::other,
                      .part = Part::attention});
  add_norm(enters, "hidden_norm", d.hidden, Role::input_norm);
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "pre_feedforward_layernorm", d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm", d.hidden, Role::post_feedforward_norm);
  layer.tensors.push_back(parameter("layer_scalar", {1}, Role::layer_scale, Part::norm));
  layer.children = {attention(a), gated_mlp(d.mlp())};
  tree.modules = {embedding("embed_tokens", d.vocabulary, d.hidden), std::move(enters), std::move(layer),
                  norm("norm", d.hidden, Role::final_norm),
                  output_head("lm_head", d.vocabulary, d.hidden, d.tied, "embed_tokens.weight")};
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_scores(config, tree, d);
}

void describe_k3_dspark(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                          "target_hidden_size", "num_target_layers"})
    config.size(key);
  const Decoder d = read_draft(config, tree);
  const LatentAttention a = read_latent_attention(config, d, {});
  Module enters{"", "what enters", {}, {}, {}};
  for (const char* name : {"embed_tokens.weight", "lm_head.weight"})
    add_buffer(enters, name, {d.vocabulary.value(), d.hidden.value()});
  add_linear(enters, {.name = "context_proj",
                      .in = config.size("target_hidden_size") * config.size("num_target_layers"),
                      .out = d.hidden,
                      .role = Role::other,
                      .part = Part::attention});
  add_norm(enters, "context_norm", d.hidden, Role::input_norm);
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  tree.modules = {std::move(enters), std::move(layer), norm("final_norm", d.hidden, Role::final_norm)};
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_scores(config, tree, d);
}

constexpr std::string_view kGemma4DsparkNames[] = {"Gemma4DSparkModel"}, kK3DsparkNames[] = {"K3DSparkModel"};

}  // namespace

const Family kGemma4Dspark = {"dspark_gemma4",       "DSpark of Gemma 4", kGemma4DsparkNames, {}, {},
                              describe_gemma4_dspark};
const Family kK3Dspark = {"dspark_k3", "DSpark of Kimi K3", kK3DsparkNames, {}, {}, describe_k3_dspark};

}  // namespace assay::families
