// config.json out of GGUF metadata: gguf_hyperparameters backwards.
#include <fmt/format.h>

#include <cmath>

#include "core/model/config.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_import.h"
#include "core/model/stored_reader.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kSoftmaxGating = 1, kSigmoidGating = 2;

// A float32 as the shortest decimal that means it: 1e-06, and not 9.999999974752427e-07.
double shortest(double value) {
  return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr);
}

class ConfigWriter {
 public:
  ConfigWriter(const gguf::Header& header, const GgufFamily& family, const StoredTensors& stored)
      : header_(header), family_(family), stored_(stored), architecture_(family.architecture) {}

  ParsedJson write(const ParsedJson& sizes, ElementType type, std::vector<std::string>& notes) {
    config_["architectures"] = {std::string(family_.hf_class)};
    config_["model_type"] = std::string(family_.family);
    config_["dtype"] = type == ElementType::F32   ? "float32"
                       : type == ElementType::F16 ? "float16"
                                                  : "bfloat16";
    take_sizes(sizes);
    real("rms_norm_eps", "attention.layer_norm_rms_epsilon");
    whole("vocab_size", "vocab_size");
    for (const LogicalTensor& tensor : stored_.tensors) {
      if (tensor.name == "token_embd.weight") config_["vocab_size"] = tensor.rows;
    }
    experts();
    token("bos_token_id", "tokenizer.ggml.bos_token_id");
    token("eos_token_id", "tokenizer.ggml.eos_token_id");
    token("pad_token_id", "tokenizer.ggml.padding_token_id");
    rope(notes);
    return std::move(config_);
  }

 private:
  const gguf::KeyValue* find(std::string_view key) const {
    return header_.find(fmt::format("{}.{}", architecture_, key));
  }
  std::optional<double> number(std::string_view key) const {
    const gguf::KeyValue* found = find(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<double>(&found->value);
    return value == nullptr ? std::nullopt : std::optional(shortest(*value));
  }
  void real(const char* name, std::string_view key) {
    if (const auto value = number(key)) config_[name] = *value;
  }
  void whole(const char* name, std::string_view key) {
    if (const auto value = header_.number(fmt::format("{}.{}", architecture_, key))) config_[name] = *value;
  }
  // Some files say -1 where there is none.
  void token(const char* name, std::string_view key) {
    const auto value = header_.number(key);
    if (value && *value < config_.value("vocab_size", std::uint64_t{0})) config_[name] = *value;
  }

  // The sizes that ModelConfig::from_gguf finds, under the names of this family's class.
  void take_sizes(const ParsedJson& sizes) {
    static constexpr std::string_view kKept[] = {
        "hidden_size",         "num_hidden_layers",       "intermediate_size",
        "num_attention_heads", "num_key_value_heads",     "q_lora_rank",
        "kv_lora_rank",        "max_position_embeddings", "num_experts_per_tok",
        "n_shared_experts",    "moe_intermediate_size",   "first_k_dense_replace",
        "qk_nope_head_dim",    "qk_rope_head_dim",        "v_head_dim",
        "tie_word_embeddings", "num_local_experts"};
    for (const std::string_view key : kKept) {
      if (const auto found = sizes.find(key); found != sizes.end()) config_[std::string(key)] = *found;
    }
    const bool latent = config_.contains("kv_lora_rank");
    if (!latent && sizes.contains("head_dim")) config_["head_dim"] = sizes.at("head_dim");
    const bool biased = sizes.value("attention_bias", false);
    if (family_.family != "qwen2" && biased) config_["attention_bias"] = true;
    if (latent) config_["num_nextn_predict_layers"] = sizes.value("num_nextn_predict_layers", 0);
  }

  void experts() {
    if (!config_.contains("num_local_experts")) return;
    const bool latent = config_.contains("kv_lora_rank");
    if (family_.family != "mixtral") {
      config_[latent ? "n_routed_experts" : "num_experts"] = config_["num_local_experts"];
      config_.erase("num_local_experts");
    }
    if (family_.family == "qwen3_moe") config_["norm_topk_prob"] = true;  // as llama.cpp computes it
    if (!latent) return;
    whole("n_group", "expert_group_count");
    whole("topk_group", "expert_group_used_count");
    real("routed_scaling_factor", "expert_weights_scale");
    const gguf::KeyValue* norm = find("expert_weights_norm");
    const bool* normalized = norm == nullptr ? nullptr : std::get_if<bool>(&norm->value);
    config_["norm_topk_prob"] = normalized != nullptr && *normalized;
    const bool third = family_.family == "deepseek_v3";
    const auto gating = header_.number(architecture_ + ".expert_gating_func");
    if (gating == kSigmoidGating || gating == kSoftmaxGating)
      config_["scoring_func"] = gating == kSigmoidGating ? "sigmoid" : "softmax";
    if (third)
      config_["topk_method"] = "noaux_tc";
    else
      config_["topk_method"] = config_.contains("n_group") ? "group_limited_greedy" : "greedy";
  }

  void rope(std::vector<std::string>& notes) {
    real("rope_theta", "rope.freq_base");
    const std::string type = header_.text(architecture_ + ".rope.scaling.type").value_or("none");
    ParsedJson scaling = ParsedJson::object();
    const auto put = [&](const char* name, std::string_view key, double factor = 1) {
      if (const auto value = number(key)) scaling[name] = shortest(*value * factor);
    };
    if (type == "linear" || type == "yarn") {
      scaling["type"] = scaling["rope_type"] = type;
      put("factor", "rope.scaling.factor");
    }
    if (type == "yarn") {
      if (const auto context = header_.number(architecture_ + ".rope.scaling.original_context_length"))
        scaling["original_max_position_embeddings"] = *context;
      put("extrapolation_factor", "rope.scaling.yarn_ext_factor");
      put("attention_factor", "rope.scaling.yarn_attn_factor");
      put("beta_fast", "rope.scaling.yarn_beta_fast");
      put("beta_slow", "rope.scaling.yarn_beta_slow");
      put("mscale_all_dim", "rope.scaling.yarn_log_multiplier", 10);
      if (scaling.contains("mscale_all_dim")) {
        scaling["mscale"] = scaling["mscale_all_dim"];
        notes.push_back(
            "rope scaling: mscale is taken to equal mscale_all_dim, of which alone the metadata speak");
      }
    }
    if (!scaling.empty()) config_["rope_scaling"] = std::move(scaling);
    for (const LogicalTensor& tensor : stored_.tensors) {
      if (tensor.name == "rope_freqs.weight")
        notes.push_back(
            "rope_freqs.weight, Llama 3's scaling of rotary frequencies, is not turned into a "
            "rope_scaling: add the original config.json's");
    }
  }

  const gguf::Header& header_;
  const GgufFamily& family_;
  const StoredTensors& stored_;
  std::string architecture_;
  ParsedJson config_ = ParsedJson::object();
};

}  // namespace

ParsedJson hf_config(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored,
                     ElementType type, std::vector<std::string>& notes) {
  const ModelConfig sizes = ModelConfig::from_gguf(*gguf.gguf, gguf.files.front().path, gguf.tensors);
  return ConfigWriter(*gguf.gguf, family, stored).write(sizes.document(), type, notes);
}

}  // namespace assay
