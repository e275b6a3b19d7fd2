#include "core/model/gguf_family.h"

#include <fmt/format.h>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Vocabulary = GgufFamily::Vocabulary;

// Defaults: what to_dict() of the class gives (transformers 5), of the keys that a GGUF keeps.
constexpr GgufFamily kFamilies[] = {
    {"llama", "llama", "LlamaForCausalLM",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0})",
     true, true, Vocabulary::sentencepiece_first},
    {"mistral", "llama", "MistralForCausalLM",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0})",
     true, true, Vocabulary::sentencepiece_first},
    {"mixtral", "llama", "MixtralForCausalLM",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
         "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "num_local_experts": 8, "num_experts_per_tok": 2})",
     true, false, Vocabulary::sentencepiece_first},
    {"qwen2", "qwen2", "Qwen2ForCausalLM",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768,
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0})",
     false, false, Vocabulary::sentencepiece_first},
    {"qwen3", "qwen3", "Qwen3ForCausalLM",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 10000.0})",
     false, false, Vocabulary::sentencepiece_first},
    {"qwen3_moe", "qwen3moe", "Qwen3MoeForCausalLM",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
         "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 32768,
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "moe_intermediate_size": 768,
         "num_experts_per_tok": 8, "num_experts": 128})",
     false, false, Vocabulary::byte_level},
    {"deepseek_v2", "deepseek2", "DeepseekV2ForCausalLM",
     R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0, "first_k_dense_replace": 0, "kv_lora_rank": 512, "q_lora_rank": 1536,
         "n_routed_experts": 64, "n_shared_experts": 2, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "routed_scaling_factor": 1.0, "norm_topk_prob": false, "v_head_dim": 128,
         "moe_intermediate_size": 1407})",
     false, false, Vocabulary::byte_level},
    {"deepseek_v3", "deepseek2", "DeepseekV3ForCausalLM",
     R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
         "num_attention_heads": 128, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536,
         "n_routed_experts": 256, "n_shared_experts": 1, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "routed_scaling_factor": 2.5, "norm_topk_prob": true, "v_head_dim": 128,
         "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4})",
     false, false, Vocabulary::byte_level},
};

// rope_parameters (transformers 5), or rope_scaling and rope_theta (before), in one vocabulary.
ParsedJson read_rope(const ModelConfig& config, const ParsedJson& defaults) {
  ParsedJson rope = ParsedJson::object();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto found = config.text().find(key);
    if (found != config.text().end() && found->is_object()) rope.update(*found);
  }
  const auto take = [&](const char* key, const ParsedJson& from) {
    if (!rope.contains(key) && from.contains(key) && !from.at(key).is_null()) rope[key] = from.at(key);
  };
  take("rope_theta", config.text());
  take("rope_theta", defaults);
  if (!rope.contains("rope_type")) rope["rope_type"] = rope.contains("type") ? rope["type"] : "default";
  take("original_max_position_embeddings", config.text());
  if (rope["rope_type"] == "yarn" && !rope.contains("original_max_position_embeddings")) {
    const auto& from = config.text().contains("max_position_embeddings") ? config.text() : defaults;
    rope["original_max_position_embeddings"] = from.at("max_position_embeddings");
  }
  return rope;
}

}  // namespace

const GgufFamily* gguf_family(const ModuleTree& tree) {
  return gguf_family(tree.family);
}

const GgufFamily* gguf_family(std::string_view family) {
  for (const GgufFamily& known : kFamilies) {
    if (known.family == family) return &known;
  }
  return nullptr;
}

GgufParameters::GgufParameters(const ModelConfig& config, const GgufFamily& family)
    : config_(config),
      defaults_(ParsedJson::parse(family.class_defaults)),
      rope_(read_rope(config, defaults_)) {
  const auto& text = config.text();
  const auto say = [&](const char* key, const ParsedJson& value) {
    if (!text.contains(key) || text.at(key).is_null()) defaults_[key] = value;
  };
  // Derived by the classes: one key-value head per head, and the latent classes' head_dim.
  if (!defaults_.contains("num_key_value_heads")) say("num_key_value_heads", *find({"num_attention_heads"}));
  if (family.head_dim_from_width)
    say("head_dim", size("hidden_size") / std::max<std::uint64_t>(1, size("num_attention_heads")));
  // A model_type that transformers has no class for (Kimi K2) is read as it stands.
  if (defaults_.contains("qk_rope_head_dim") && config.model_type() == family.family)
    say("head_dim", *find({"qk_rope_head_dim"}));
}

const ParsedJson* GgufParameters::find(std::initializer_list<std::string_view> keys) const {
  for (const ParsedJson* from : {&config_.text(), &defaults_}) {
    for (const std::string_view key : keys) {
      const auto found = from->find(key);
      if (found != from->end() && !found->is_null()) return &*found;
    }
  }
  return nullptr;
}

std::uint64_t GgufParameters::size(std::string_view key) const {
  const ParsedJson* value = find({key});
  if (value == nullptr) throw Error::input(fmt::format("{} is missing", key)).in(config_.source());
  const std::uint64_t number = json_u64(*value, key, config_.source());
  if (number > UINT32_MAX)
    throw Error::input(fmt::format("{} is {}, too large for a GGUF", key, number)).in(config_.source());
  return number;
}

std::uint64_t GgufParameters::head_dim() const {
  if (find({"head_dim"}) != nullptr) return size("head_dim");
  return size("hidden_size") / std::max<std::uint64_t>(1, size("num_attention_heads"));
}

}  // namespace assay
