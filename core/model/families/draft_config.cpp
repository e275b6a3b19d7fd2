#include "core/model/families/draft_config.h"

#include <nlohmann/json.hpp>

namespace assay::families {

ModelConfig flat_draft(const ModelConfig& config) {
  constexpr const char* kLayers = "transformer_layer_config";
  const ParsedJson& document = config.document();
  const auto layers = document.find(kLayers);
  if (layers == document.end() || !layers->is_object()) return config;
  ParsedJson flat = document;
  flat.erase(kLayers);
  flat.update(*layers);
  flat["architectures"] = document.value("architectures", ParsedJson::array());
  // Of which of the target's layers hidden states enter: said of DFlash and DSpark by another name.
  if (const auto states = document.find("aux_hidden_state_layer_ids"); states != document.end())
    flat["target_layer_ids"] = *states;
  return ModelConfig::from_json(std::move(flat), config.source());
}

std::optional<std::uint64_t> entries_of(const ModelConfig& config, std::string_view key) {
  const ParsedJson& text = config.text();
  const auto list = text.find(key);
  if (list == text.end() || !list->is_array() || list->empty()) return std::nullopt;
  return list->size();
}

}  // namespace assay::families
