#include "core/model/derived_keys.h"

#include <algorithm>
#include <string_view>

#include "core/formats/json.h"

namespace assay {
namespace {

const ParsedJson* find(const ParsedJson& object, std::string_view key) {
  const std::size_t dot = key.find('.');
  const auto at = object.find(std::string(key.substr(0, dot)));
  if (at == object.end()) return nullptr;
  if (dot == std::string_view::npos) return &*at;
  return at->is_object() ? find(*at, key.substr(dot + 1)) : nullptr;
}

std::optional<std::uint64_t> count_of(const ParsedJson& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_array() || value.empty()) return std::nullopt;
  const bool alike = std::all_of(value.begin(), value.end(), [&](const ParsedJson& one) {
    return one.is_number_unsigned() && one == value.front();
  });
  return alike ? std::optional(value.front().get<std::uint64_t>()) : std::nullopt;
}

}  // namespace

std::optional<ToldCount> told_count(const ModelConfig& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const ParsedJson* found = find(config.text(), key);
    if (found == nullptr) continue;
    if (const auto count = count_of(*found)) return ToldCount{key, *count};
  }
  return std::nullopt;
}

std::optional<ToldCount> told_layers(const ModelConfig& config) {
  return told_count(config, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
}

std::optional<ToldCount> told_experts(const ModelConfig& config) {
  return told_count(config, {"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts",
                             "n_experts", "num_moe_experts", "ffn_config.moe_num_experts"});
}

std::optional<ToldCount> told_experts_per_token(const ModelConfig& config, std::uint64_t experts) {
  for (const char* key :
       {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "moe_router_topk",
        "num_selected_experts", "experts_per_token", "top_k_experts", "n_activated_experts",
        "num_activated_experts", "num_active_experts", "num_local_experts_per_tok", "n_expert_used",
        "router_top_k", "router_topk", "ffn_config.moe_top_k", "topk", "top_k"}) {
    auto told = told_count(config, {key});
    if (told && told->count > 0 && told->count <= experts) return told;
  }
  return std::nullopt;
}

}  // namespace assay
