// Sources: gguf-py/gguf/constants.py (Keys); llama.cpp, src/llama-model.cpp (load_hparams) and the
// converters.
#include "core/model/gguf_settings.h"

#include <fmt/format.h>

#include "core/formats/gguf.h"
#include "core/formats/json.h"

namespace assay {
namespace {

struct Renamed {
  std::string_view gguf, config;
};
constexpr Renamed kSettings[] = {
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
};
constexpr Renamed kScaling[] = {
    {"rope.scaling.type", "rope_type"},
    {"rope.scaling.factor", "factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.yarn_beta_fast", "beta_fast"},
    {"rope.scaling.yarn_beta_slow", "beta_slow"},
};

// Numbers, flags and texts; null for a key that is not there or holds a list.
ParsedJson value_of(const gguf::Header& header, const std::string& architecture, std::string_view key) {
  const gguf::KeyValue* found = header.find(fmt::format("{}.{}", architecture, key));
  if (found == nullptr) return nullptr;
  return std::visit(
      [](const auto& value) -> ParsedJson {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, gguf::Array>)
          return nullptr;
        else
          return value;
      },
      found->value);
}

void add(ParsedJson& object, std::string_view key, ParsedJson value) {
  if (!value.is_null()) object[key] = std::move(value);
}

// DeepSeek's converter keeps 0.1 · mscale_all_dim; llama.cpp scales the scores by its square and leaves cos
// and sin alone, which is what equal mscales mean.
void add_mscale(ParsedJson& scaling, const ParsedJson& multiplier) {
  if (!multiplier.is_number()) return;
  scaling["mscale"] = scaling["mscale_all_dim"] = multiplier.get<double>() / 0.1;
}

// The rotary part of a head, where it is not all of it; latent attention tells it by its widths.
void add_partial_rotation(ParsedJson& values, const ParsedJson& rotary) {
  if (!rotary.is_number_unsigned() || values.contains("kv_lora_rank")) return;
  const auto number = [&](std::string_view key) {
    const auto found = values.find(key);
    return found != values.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const double heads = number("num_attention_heads");
  const double head_dim = values.contains("head_dim") ? number("head_dim")
                          : heads > 0                 ? number("hidden_size") / heads
                                                      : 0;
  if (head_dim > rotary.get<double>()) values["partial_rotary_factor"] = rotary.get<double>() / head_dim;
}

}  // namespace

void add_gguf_settings(ParsedJson& values, const gguf::Header& header, const std::string& architecture) {
  for (const Renamed& entry : kSettings)
    add(values, entry.config, value_of(header, architecture, entry.gguf));
  ParsedJson scaling = ParsedJson::object();
  for (const Renamed& entry : kScaling)
    add(scaling, entry.config, value_of(header, architecture, entry.gguf));
  add_mscale(scaling, value_of(header, architecture, "rope.scaling.yarn_log_multiplier"));
  // Of longrope a file holds the factors, as tensors, and how cos and sin are scaled; no type. A factor alone
  // is linear scaling, as files of 2023 have it.
  if (!scaling.contains("rope_type")) {
    add(scaling, "attention_factor", value_of(header, architecture, "rope.scaling.attn_factor"));
    if (scaling.contains("factor")) scaling["rope_type"] = "linear";
  }
  if (!scaling.empty()) values["rope_scaling"] = std::move(scaling);
  // llama.cpp routes by groups where there are several, whatever scores them.
  const bool grouped = values.contains("n_group") && values["n_group"].is_number_unsigned() &&
                       values["n_group"].get<std::uint64_t>() > 1;
  if (grouped && values.value("topk_method", "") == "greedy") values["topk_method"] = "group_limited_greedy";
  add_partial_rotation(values, value_of(header, architecture, "rope.dimension_count"));
}

}  // namespace assay
