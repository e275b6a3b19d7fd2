#include "core/model/find_quantization.h"

#include "core/formats/json.h"
#include "core/model/nested_config.h"
#include "core/model/quantized_layers.h"
#include "core/model/stored_form.h"
#include "core/system/error.h"

namespace assay {
namespace {

ParsedJson object_of(const std::filesystem::path& path) {
  ParsedJson document = read_config_json(path);
  if (!document.is_object()) throw Error::input("is not a JSON object").in(path);
  return document;
}

const ParsedJson* object_in(const ParsedJson& document, std::string_view key) {
  if (!document.is_object()) return nullptr;
  const auto found = document.find(key);
  return found != document.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

std::vector<const ParsedJson*> language_model_nests(const ParsedJson& document) {
  std::vector<const ParsedJson*> nests;
  for (const auto& [outer, inner, beside] : kLanguageModelNests) {
    if (!beside.empty() && object_in(document, beside) == nullptr) continue;
    const ParsedJson* nest = object_in(document, outer);
    if (nest != nullptr && !inner.empty()) nest = object_in(*nest, inner);
    if (nest != nullptr) nests.push_back(nest);
  }
  return nests;
}

std::optional<QuantizationConfig> quantization_in(const ParsedJson& object,
                                                  const std::filesystem::path& source) {
  for (const std::string_view key : kQuantizationKeys) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    // "quantization" is a word that others use too.
    if (key != "quantization" || found->is_object()) return parse_quantization(*found, source);
  }
  return std::nullopt;
}

std::optional<QuantizationConfig> quantization_beside(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "hf_quant_config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const ParsedJson document = object_of(path);
  const ParsedJson* said = object_in(document, "quantization");
  if (said == nullptr) return std::nullopt;
  QuantizationConfig config = parse_quantization(*said, path);
  if (config.method.empty() || config.format.empty()) return std::nullopt;  // ModelOpt, nothing quantized
  config.method = "modelopt";
  return config;
}

// Not by way of ModelConfig: the config may be no model's.
std::optional<QuantizationConfig> read_quantization(const Checkpoint& checkpoint) {
  if (!checkpoint.config.empty()) {
    const ParsedJson document = object_of(checkpoint.config);
    for (const ParsedJson* nest : language_model_nests(document)) {
      if (auto found = quantization_in(*nest, checkpoint.config)) return found;
    }
    if (auto found = quantization_in(document, checkpoint.config)) return found;
  }
  return quantization_beside(checkpoint.root);
}

}  // namespace assay
