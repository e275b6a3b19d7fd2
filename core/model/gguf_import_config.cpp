// config.json out of GGUF metadata: gguf_hyperparameters backwards.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/model/config.h"
#include "core/model/gguf_gating.h"
#include "core/model/gguf_import.h"
#include "core/model/llama3_rope.h"
#include "core/system/error.h"

namespace assay {
namespace {

// A float32 as the shortest decimal that means it: 1e-06, and not 9.999999974752427e-07.
ParsedJson shortest(const ParsedJson& value) {
  if (value.is_number_float())
    return std::strtod(fmt::format("{}", static_cast<float>(value.get<double>())).c_str(), nullptr);
  if (!value.is_object()) return value;
  ParsedJson object = ParsedJson::object();
  for (const auto& [key, member] : value.items()) object[key] = shortest(member);
  return object;
}

class ConfigWriter {
 public:
  ConfigWriter(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored)
      : gguf_(gguf), header_(*gguf.gguf), family_(family), stored_(stored) {}

  // `known`: what ModelConfig::from_gguf finds.
  ParsedJson write(const ParsedJson& known, ElementType type, HfModel& model) {
    config_["architectures"] = {std::string(family_.hf_class)};
    config_["model_type"] = std::string(family_.family);
    config_["dtype"] = type == ElementType::F32   ? "float32"
                       : type == ElementType::F16 ? "float16"
                                                  : "bfloat16";
    static constexpr std::string_view kKept[] = {"hidden_size",
                                                 "num_hidden_layers",
                                                 "intermediate_size",
                                                 "num_attention_heads",
                                                 "num_key_value_heads",
                                                 "q_lora_rank",
                                                 "kv_lora_rank",
                                                 "max_position_embeddings",
                                                 "num_experts_per_tok",
                                                 "n_shared_experts",
                                                 "moe_intermediate_size",
                                                 "first_k_dense_replace",
                                                 "qk_nope_head_dim",
                                                 "qk_rope_head_dim",
                                                 "v_head_dim",
                                                 "tie_word_embeddings",
                                                 "num_local_experts",
                                                 "rms_norm_eps",
                                                 "vocab_size",
                                                 "rope_theta",
                                                 "rope_scaling",
                                                 "n_group",
                                                 "topk_group",
                                                 "routed_scaling_factor"};
    for (const std::string_view key : kKept) {
      if (const auto found = known.find(key); found != known.end())
        config_[std::string(key)] = shortest(*found);
    }
    for (const LogicalTensor& tensor : stored_.tensors) {
      if (tensor.name == "token_embd.weight") config_["vocab_size"] = tensor.rows;
    }
    attention(known);
    experts(known);
    rope_frequencies(model.left_out);
    token("bos_token_id", "tokenizer.ggml.bos_token_id");
    token("eos_token_id", "tokenizer.ggml.eos_token_id");
    token("pad_token_id", "tokenizer.ggml.padding_token_id");
    note_losses(model.notes);
    return std::move(config_);
  }

 private:
  bool latent() const { return config_.contains("kv_lora_rank"); }

  // Some files say -1 where there is none.
  void token(const char* name, std::string_view key) {
    const auto value = header_.number(key);
    if (value && *value < config_.value("vocab_size", std::uint64_t{0})) config_[name] = *value;
  }

  void attention(const ParsedJson& known) {
    if (!latent() && known.contains("head_dim")) config_["head_dim"] = known.at("head_dim");
    if (family_.family != "qwen2" && known.value("attention_bias", false)) config_["attention_bias"] = true;
    if (family_.family == "mixtral" && known.contains("sliding_window"))
      config_["sliding_window"] = known.at("sliding_window");
    if (family_.family == "llama" && known.value("mlp_bias", false)) config_["mlp_bias"] = true;
    if (latent()) config_["num_nextn_predict_layers"] = known.value("num_nextn_predict_layers", 0);
  }

  void experts(const ParsedJson& known) {
    if (!config_.contains("num_local_experts")) return;
    if (family_.family != "mixtral") {
      config_[latent() ? "n_routed_experts" : "num_experts"] = config_["num_local_experts"];
      config_.erase("num_local_experts");
    }
    if (family_.family == "qwen3_moe")  // unsaid, as llama.cpp computes it
      config_["norm_topk_prob"] = known.value("norm_topk_prob", true);
    if (!latent()) return;
    config_["norm_topk_prob"] = known.value("norm_topk_prob", false);
    const auto gating = header_.number(fmt::format("{}.expert_gating_func", family_.architecture));
    if (gating == kGgufSigmoidGating || gating == kGgufSoftmaxGating)
      config_["scoring_func"] = gating == kGgufSigmoidGating ? "sigmoid" : "softmax";
    const bool third = family_.family == "deepseek_v3";
    config_["topk_method"] = third                         ? "noaux_tc"
                             : config_.contains("n_group") ? "group_limited_greedy"
                                                           : "greedy";
  }

  void note_losses(std::vector<std::string>& notes) const {
    const auto scaling = config_.find("rope_scaling");
    if (scaling != config_.end() && scaling->contains("mscale"))
      notes.emplace_back(
          "rope scaling: mscale is taken to equal mscale_all_dim, of which alone the metadata speak");
  }

  // Of Llama 3's scaling a GGUF has the factors it leads to, and no key.
  void rope_frequencies(std::vector<std::string>& left_out) {
    const std::vector<float> factors = rope_factors(gguf_, stored_);
    if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; })) return;
    const auto theta = config_.find("rope_theta");
    const float base = theta != config_.end() && theta->is_number() ? theta->get<float>() : 10000.0F;
    const auto found = llama3_rope_of(factors, base);
    if (!found || family_.architecture != "llama" || config_.contains("rope_scaling")) {
      left_out.emplace_back("rope_freqs.weight");
      return;
    }
    config_["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", found->factor},
        {"low_freq_factor", found->low_freq_factor},
        {"high_freq_factor", found->high_freq_factor},
        {"original_max_position_embeddings", static_cast<std::uint64_t>(found->original_context)}};
  }

  const Checkpoint& gguf_;
  const gguf::Header& header_;
  const GgufFamily& family_;
  const StoredTensors& stored_;
  ParsedJson config_ = ParsedJson::object();
};

constexpr std::string_view kCarried[] = {"rms_norm_eps", "rope_theta", "rope_scaling"};
constexpr std::string_view kCarriedByMixtral[] = {"rms_norm_eps", "rope_theta", "rope_scaling",
                                                  "sliding_window"};
constexpr std::string_view kCarriedByQwen3Moe[] = {"rms_norm_eps", "rope_theta", "rope_scaling",
                                                   "norm_topk_prob"};
constexpr std::string_view kCarriedByDeepseek[] = {
    "rms_norm_eps",          "rope_theta", "rope_scaling", "first_k_dense_replace", "n_shared_experts",
    "routed_scaling_factor", "n_group",    "topk_group",   "topk_method",           "norm_topk_prob"};
// Without the last: the class of V2 never makes weights of experts add up to one.
constexpr std::span kCarriedByDeepseekV2 = std::span(kCarriedByDeepseek).first<9>();
constexpr std::string_view kIdleOfDeepseekV2[] = {"norm_topk_prob"};

}  // namespace

ConfigKeys carried_keys(const GgufFamily& family) {
  if (family.family == "mixtral") return {kCarriedByMixtral};
  if (family.family == "qwen3_moe") return {kCarriedByQwen3Moe};
  if (family.family == "deepseek_v2") return {kCarriedByDeepseekV2, kIdleOfDeepseekV2};
  if (family.family == "deepseek_v3") return {kCarriedByDeepseek};
  return {kCarried};
}

ParsedJson hf_config(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored,
                     ElementType type, HfModel& model) {
  const ModelConfig sizes = ModelConfig::from_gguf(*gguf.gguf, gguf.files.front().path, gguf.tensors);
  return ConfigWriter(gguf, family, stored).write(sizes.document(), type, model);
}

}  // namespace assay
