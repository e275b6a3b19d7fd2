#include "core/model/gguf_numbers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <variant>

namespace assay {
namespace {

struct Renamed {
  std::string_view gguf, config;
};
// Sources as of the sizes: gguf-py/gguf/constants.py (Keys), convert_hf_to_gguf.py.
constexpr Renamed kNumbers[] = {
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
};
constexpr Renamed kRopeNumbers[] = {
    {"rope.scaling.type", "rope_type"},
    {"rope.scaling.factor", "factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.yarn_beta_fast", "beta_fast"},
    {"rope.scaling.yarn_beta_slow", "beta_slow"},
};

class Metadata {
 public:
  Metadata(const gguf::Header& header, const std::string& architecture)
      : header_(header), architecture_(architecture) {}

  std::optional<ParsedJson> value(std::string_view key) const {
    const gguf::KeyValue* found = header_.find(fmt::format("{}.{}", architecture_, key));
    if (found == nullptr || std::holds_alternative<gguf::Array>(found->value)) return std::nullopt;
    return std::visit(
        [](const auto& v) -> ParsedJson {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, gguf::Array>)
            return {};
          else
            return v;
        },
        found->value);
  }
  std::optional<double> number(std::string_view key) const {
    const auto found = value(key);
    if (!found || !found->is_number()) return std::nullopt;
    return found->get<double>();
  }

 private:
  const gguf::Header& header_;
  const std::string& architecture_;
};

void add_rope(ParsedJson& config, const Metadata& metadata) {
  ParsedJson rope = ParsedJson::object();
  for (const Renamed& entry : kRopeNumbers) {
    if (auto value = metadata.value(entry.gguf)) rope[entry.config] = std::move(*value);
  }
  // DeepSeek's: 0.1 · mscale_all_dim, and mscale the same.
  if (const auto log_multiplier = metadata.number("rope.scaling.yarn_log_multiplier"))
    rope["mscale"] = rope["mscale_all_dim"] = *log_multiplier * 10;
  // A factor alone is linear scaling, as files of 2023 have it.
  if (!rope.empty() && !rope.contains("rope_type")) rope["rope_type"] = "linear";
  if (!rope.empty()) config["rope_scaling"] = std::move(rope);
}

// How much of a head turns, where that is not all of it. Latent attention has its turned part apart.
void add_partial_rotation(ParsedJson& config, const Metadata& metadata) {
  const auto turned = metadata.number("rope.dimension_count");
  if (!turned || config.contains("kv_lora_rank")) return;
  double head = 0;
  if (config.contains("head_dim")) {
    head = config["head_dim"].get<double>();
  } else if (config.contains("hidden_size") && config.contains("num_attention_heads")) {
    const double heads = config["num_attention_heads"].get<double>();
    if (heads > 0) head = config["hidden_size"].get<double>() / heads;
  }
  if (head > 0 && *turned < head) config["partial_rotary_factor"] = *turned / head;
}

}  // namespace

void add_forward_numbers(ParsedJson& config, const gguf::Header& header, const std::string& architecture) {
  const Metadata metadata(header, architecture);
  for (const Renamed& entry : kNumbers) {
    if (auto value = metadata.value(entry.gguf)) config[entry.config] = std::move(*value);
  }
  add_rope(config, metadata);
  add_partial_rotation(config, metadata);
}

}  // namespace assay
