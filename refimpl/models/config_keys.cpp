#include "refimpl/models/config_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/models/placeholder_tokens.h"

namespace assay {
namespace {

// Names and versions, tokens, training, generation, classification heads, how a forward pass is scheduled.
constexpr std::string_view kIdle[] = {"_attn_implementation",
                                      "_attn_implementation_autoset",
                                      "_name_or_path",
                                      "_commit_hash",
                                      "_flash_attn_2_enabled",
                                      "add_bos_token",
                                      "add_eos_token",
                                      "architectures",
                                      "attention_dropout",
                                      "attention_probs_dropout_prob",
                                      "attn_dropout",
                                      "attn_implementation",
                                      "attn_pdrop",
                                      "auto_map",
                                      "aux_loss_alpha",
                                      "bad_words_ids",
                                      "begin_suppress_tokens",
                                      "bos_token",
                                      "bos_token_id",
                                      "cache_implementation",
                                      "chunk_size_feed_forward",
                                      "classifier_dropout",
                                      "classifier_dropout_prob",
                                      "compression_config",
                                      "custom_pipelines",
                                      "decoder_start_token_id",
                                      "diversity_penalty",
                                      "do_sample",
                                      "dtype",
                                      "early_stopping",
                                      "embd_pdrop",
                                      "embed_dropout",
                                      "encoder_no_repeat_ngram_size",
                                      "eos_token",
                                      "eos_token_id",
                                      "ep_size",
                                      "exponential_decay_length_penalty",
                                      "finetuning_task",
                                      "forced_bos_token_id",
                                      "forced_eos_token_id",
                                      "fp32",
                                      "bf16",
                                      "fp16",
                                      "gradient_checkpointing",
                                      "hidden_dropout",
                                      "hidden_dropout_prob",
                                      "id2label",
                                      "initializer_factor",
                                      "initializer_range",
                                      "is_decoder",
                                      "is_encoder_decoder",
                                      "keys_to_ignore_at_inference",
                                      "label2id",
                                      "length_penalty",
                                      "max_length",
                                      "max_new_tokens",
                                      "min_length",
                                      "model_type",
                                      "n_ctx",
                                      "no_repeat_ngram_size",
                                      "num_beam_groups",
                                      "num_beams",
                                      "num_labels",
                                      "num_return_sequences",
                                      "output_attentions",
                                      "output_hidden_states",
                                      "output_router_logits",
                                      "output_scores",
                                      "pad_token",
                                      "pad_token_id",
                                      "prefix",
                                      "pretraining_tp",
                                      "problem_type",
                                      "quantization",
                                      "quantization_config",
                                      "remove_invalid_values",
                                      "repetition_penalty",
                                      "resid_pdrop",
                                      "return_dict",
                                      "return_dict_in_generate",
                                      "router_aux_loss_coef",
                                      "router_jitter_noise",
                                      "input_jitter_noise",
                                      "router_z_loss_coef",
                                      "sep_token_id",
                                      "seq_aux",
                                      "suppress_tokens",
                                      "summary_activation",
                                      "summary_first_dropout",
                                      "summary_last_dropout",
                                      "summary_proj_to_labels",
                                      "summary_type",
                                      "summary_use_proj",
                                      "task_specific_params",
                                      "temperature",
                                      "tf_legacy_loss",
                                      "tie_encoder_decoder",
                                      "tokenizer_class",
                                      "top_k",
                                      "top_p",
                                      "torch_dtype",
                                      "torchscript",
                                      "transformers.js_config",
                                      "transformers_version",
                                      "typical_p",
                                      "unsloth_fixed",
                                      "unsloth_version",
                                      "use_bfloat16",
                                      "use_cache",
                                      "use_flash_attn",
                                      "_use_flash_attention_2"};

constexpr FixedKey kFixed[] = {
    {"is_causal", "true"}, {"add_cross_attention", "false"}, {"pruned_heads", "{}"}};

constexpr std::string_view kRopeKeys[] = {"rope_type",        "type",
                                          "rope_theta",       "partial_rotary_factor",
                                          "factor",           "original_max_position_embeddings",
                                          "attention_factor", "beta_fast",
                                          "beta_slow",        "mscale",
                                          "mscale_all_dim",   "truncate",
                                          "short_factor",     "long_factor",
                                          "low_freq_factor",  "high_freq_factor",
                                          "mrope_section",    "mrope_interleaved"};

bool is_one_of(std::span<const std::string_view> list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

// Nothing is asked for: null, {}, [], "".
bool is_empty(const ParsedJson& value) {
  return value.is_null() || (value.is_structured() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

bool is_declared(const ConfigKeys& keys, std::string_view key) {
  const auto is_key = [&](const FixedKey& fixed) { return fixed.key == key; };
  return is_one_of(keys.used, key) || is_one_of(keys.idle, key) || is_idle_everywhere(key) ||
         names_placeholder(key) || std::any_of(keys.fixed.begin(), keys.fixed.end(), is_key) ||
         std::any_of(std::begin(kFixed), std::end(kFixed), is_key);
}

// Of rope_scaling and rope_parameters: one object, or one for each kind of layer.
void add_unread_rope_keys(const ConfigKeys& keys, const std::string& path, const ParsedJson& object,
                          std::vector<std::string>& unread) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      add_unread_rope_keys(keys, fmt::format("{}.{}", path, key), value, unread);
    else if (!is_one_of(kRopeKeys, key) && !is_one_of(keys.used, fmt::format("{}.{}", path, key)) &&
             !is_empty(value))
      unread.push_back(fmt::format("{}.{}", path, key));
  }
}

}  // namespace

bool is_idle_everywhere(std::string_view key) {
  return is_one_of(kIdle, key);
}

std::span<const FixedKey> fixed_everywhere() {
  return kFixed;
}

void require_fixed_keys(const ModelConfig& config, const ConfigKeys& keys) {
  const auto require = [&](const FixedKey& fixed) {
    const auto found = config.text().find(fixed.key);
    if (found == config.text().end() || is_empty(*found)) return;
    if (*found == ParsedJson::parse(fixed.computed)) return;
    if (fixed.computed == "\"silu\"" && *found == "swish") return;  // its other name
    throw Error::input(
        fmt::format("{} is {}: only {} is computed here", fixed.key, found->dump(), fixed.computed))
        .in(config.source());
  };
  for (const FixedKey& fixed : keys.fixed) require(fixed);
  for (const FixedKey& fixed : kFixed) require(fixed);
}

std::vector<std::string> unread_keys(const ModelConfig& config, const ConfigKeys& keys) {
  std::vector<std::string> unread;
  if (config.origin() == ModelConfig::Origin::gguf) return unread;
  for (const auto& [key, value] : config.text().items()) {
    if (!is_declared(keys, key) && !is_empty(value)) unread.push_back(key);
    if (key == "rope_scaling" || key == "rope_parameters") add_unread_rope_keys(keys, key, value, unread);
  }
  return unread;
}

}  // namespace assay
