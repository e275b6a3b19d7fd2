#include "core/model/config.h"

#include <fmt/format.h>

#include <array>

#include "core/formats/json.h"
#include "core/model/find_quantization.h"
#include "core/model/nested_config.h"
#include "core/model/quantized_layers.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestSize = 1ull << 32;  // no dimension of any tensor is larger

const ParsedJson* member(const ParsedJson& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_or_empty(const ParsedJson& object, std::string_view key,
                          const std::filesystem::path& source) {
  const ParsedJson* value = member(object, key);
  return value == nullptr ? std::string() : json_string(*value, key, source);
}

std::optional<std::pair<std::string, const ParsedJson*>> nested_text(const ParsedJson& document) {
  for (const auto& [outer, inner, beside] : kLanguageModelNests) {
    const ParsedJson* object = member(document, outer);
    if (object == nullptr || !object->is_object()) continue;
    if (!beside.empty() && member(document, beside) == nullptr) continue;
    if (inner.empty()) return std::pair(std::string(outer), object);
    const ParsedJson* deeper = member(*object, inner);
    if (deeper != nullptr && deeper->is_object())
      return std::pair(fmt::format("{}.{}", outer, inner), deeper);
  }
  return std::nullopt;
}

std::string first_architecture(const ParsedJson& document, const std::filesystem::path& source) {
  const ParsedJson* list = member(document, "architectures");
  if (list == nullptr) return {};
  if (!list->is_array()) throw Error::input("architectures is not a list").in(source);
  return list->empty() ? std::string() : json_string(list->front(), "architectures[0]", source);
}

std::vector<std::string> split_keys(std::string_view keys) {
  std::vector<std::string> names;
  while (true) {
    const auto bar = keys.find('|');
    names.emplace_back(keys.substr(0, bar));
    if (bar == std::string_view::npos) return names;
    keys.remove_prefix(bar + 1);
  }
}

std::string first_key(std::string_view keys) {
  return std::string(keys.substr(0, keys.find('|')));
}

// Where document and text_config contradict each other: transformers ties by the document since its version 5, and before
// by text_config (modeling_utils.py, tie_weights), and writes defaults of both.
bool document_ties(const ParsedJson& document) {
  const ParsedJson* version = member(document, "transformers_version");
  if (version == nullptr || !version->is_string()) return false;
  const std::string& text = version->get_ref<const std::string&>();
  return parse_u64(std::string_view(text).substr(0, text.find('.'))).value_or(0) >= 5;
}

}  // namespace

ModelConfig ModelConfig::from_json(ParsedJson given, const std::filesystem::path& source) {
  const auto whole = std::make_shared<const ParsedJson>(std::move(given));
  const ParsedJson& document = *whole;
  if (!document.is_object()) throw Error::input("a model config is a JSON object").in(source);
  ModelConfig config;
  config.source_ = source;
  config.document_ = config.text_ = whole;
  config.architecture_ = first_architecture(document, source);
  config.model_type_ = text_or_empty(document, "model_type", source);
  if (auto nested = nested_text(document)) {
    config.nested_in_ = nested->first;
    config.text_ = {whole, nested->second};  // a part of it, which keeps all of it
    // A document of which only the type is told (DeepSeek-VL2) is no model of its language model's class.
    if (config.architecture_.empty() && config.model_type_.empty()) {
      config.architecture_ = first_architecture(*config.text_, source);
      config.model_type_ = text_or_empty(*config.text_, "model_type", source);
    }
  }
  if (config.architecture_.empty() && config.model_type_.empty()) {
    throw Error::input("names no architecture: neither architectures nor model_type is given")
        .in(source)
        .remedy("give the config.json of the model, not of its tokenizer or generation settings");
  }
  std::optional<QuantizationConfig> quantization;
  for (const ParsedJson* object : {config.text_.get(), config.document_.get()}) {
    for (const std::string_view key : {"dtype", "torch_dtype"}) {
      if (config.dtype_.empty()) config.dtype_ = text_or_empty(*object, key, source);
    }
    if (!quantization) quantization = quantization_in(*object, source);
  }
  config.quantization_ = std::make_shared<const std::optional<QuantizationConfig>>(std::move(quantization));
  return config;
}

ModelConfig ModelConfig::read(const std::filesystem::path& config_json) {
  ModelConfig config = from_json(read_config_json(config_json), config_json);
  if (!config.quantization()) {
    config.quantization_ = std::make_shared<const std::optional<QuantizationConfig>>(
        quantization_beside(config_json.parent_path()));
  }
  return config;
}

std::optional<ModelConfig> ModelConfig::section(std::string_view key) const {
  const ParsedJson* object = member(*document_, key);
  if (object == nullptr || !object->is_object()) return std::nullopt;
  ModelConfig part = *this;
  part.document_ = part.text_ = {document_, object};
  return part;
}

std::optional<ModelConfig> ModelConfig::text_section(std::string_view key) const {
  ModelConfig inner = *this;
  inner.document_ = text_;
  return inner.section(key);
}

std::vector<ModelConfig> ModelConfig::text_sections(std::string_view key) const {
  std::vector<ModelConfig> sections;
  const ParsedJson* list = member(*text_, key);
  if (list == nullptr || !list->is_array()) return sections;
  for (const ParsedJson& entry : *list) {
    if (!entry.is_object()) throw Error::input(fmt::format("{} holds what is no object", key)).in(source_);
    ModelConfig& section = sections.emplace_back(*this);
    section.document_ = section.text_ = {text_, &entry};
  }
  return sections;
}

ModelConfig ModelConfig::language_model(Tied tied) const {
  if (nested_in_.empty()) return *this;
  constexpr std::string_view kTied = "tie_word_embeddings";
  ParsedJson own = *text_;
  // Of thinker_config.text_config, thinker_config is asked before the document.
  const auto dot = nested_in_.find('.');
  const ParsedJson* closer =
      dot == std::string::npos ? nullptr : member(*document_, nested_in_.substr(0, dot));
  const ParsedJson* outer = closer == nullptr ? nullptr : member(*closer, kTied);
  if (outer == nullptr) outer = member(*document_, kTied);
  const ParsedJson* inner_tied = member(own, kTied);
  const bool keeps = tied == Tied::either && inner_tied != nullptr && *inner_tied == true;
  if (outer != nullptr && !keeps) own[kTied] = *outer;
  if (outer == nullptr && tied == Tied::document_ties) own[kTied] = true;
  if (tied == Tied::never) own[kTied] = false;
  constexpr std::string_view kPrediction = "mtp_config";  // Inkling's layers for it, told beside the text
  const ParsedJson* prediction = member(*document_, kPrediction);
  if (prediction != nullptr && !own.contains(kPrediction)) own[kPrediction] = *prediction;
  ModelConfig inner = *this;
  inner.nested_in_.clear();
  inner.architecture_ = first_architecture(own, source_);
  inner.model_type_ = text_or_empty(own, "model_type", source_);
  inner.document_ = inner.text_ = std::make_shared<const ParsedJson>(std::move(own));
  return inner;
}

ModelConfig ModelConfig::document_only() const {
  ModelConfig outer = *this;
  outer.text_ = document_;
  return outer;
}

ModelConfig ModelConfig::with_architecture(std::string architecture) const {
  ModelConfig other = *this;
  other.architecture_ = std::move(architecture);
  return other;
}

std::optional<ConfigReader::Value> ConfigReader::find(std::string_view keys) const {
  for (std::string& key : split_keys(keys)) {
    if (const ParsedJson* value = member(config_.text(), key)) return Value{value, std::move(key)};
  }
  return std::nullopt;
}

bool ConfigReader::is_null(std::string_view keys) const {
  for (const std::string& key : split_keys(keys)) {
    const auto found = config_.text().find(key);
    if (found != config_.text().end()) return found->is_null();
  }
  return false;
}

bool ConfigReader::is_list(std::string_view keys) const {
  const auto value = find(keys);
  return value && value->json->is_array();
}

void ConfigReader::fail(const std::string& message) const {
  throw Error::input(fmt::format("{} (read as {})", message, family_)).in(config_.source());
}

std::uint64_t ConfigReader::to_number(const Value& value) const {
  // Some exporters write whole numbers as 8192.0.
  if (value.json->is_number_float()) {
    const double number = value.json->get<double>();
    if (number >= 0 && number <= static_cast<double>(kLargestSize) &&
        number == static_cast<double>(static_cast<std::uint64_t>(number))) {
      return static_cast<std::uint64_t>(number);
    }
    fail(fmt::format("{} is {}, not a whole number", value.key, value.json->dump()));
  }
  const std::uint64_t number = json_u64(*value.json, value.key, config_.source());
  if (number > kLargestSize)
    fail(fmt::format("{} is {}: no model has a size beyond 2^32", value.key, number));
  return number;
}

Quantity ConfigReader::to_size(const Value& value) const {
  const std::uint64_t number = to_number(value);
  if (number == 0) fail(fmt::format("{} is 0", value.key));
  return {value.key, number};
}

void ConfigReader::took_default(std::string_view keys, std::string value,
                                std::optional<std::uint64_t> number) {
  std::string key = first_key(keys);
  for (const DefaultTaken& taken : defaults_) {
    if (taken.key == key) return;
  }
  defaults_.push_back({std::move(key), std::move(value), number});
}

Quantity ConfigReader::size(std::string_view keys) {
  const auto value = find(keys);
  if (!value) fail(fmt::format("{} is missing, and the family has no default for it", first_key(keys)));
  return to_size(*value);
}

Quantity ConfigReader::size(std::string_view keys, std::uint64_t class_default) {
  if (const auto value = find(keys)) return to_size(*value);
  took_default(keys, std::to_string(class_default), class_default);
  return {first_key(keys), class_default};
}

Quantity ConfigReader::size(std::string_view keys, const Quantity& derived_default) {
  if (const auto value = find(keys)) return to_size(*value);
  took_default(keys,
               derived_default.name().empty() || derived_default.name() == first_key(keys)
                   ? std::to_string(derived_default.value())
                   : fmt::format("{} (= {})", derived_default.value(), derived_default.name()),
               derived_default.value());
  return derived_default.named(first_key(keys));
}

std::optional<Quantity> ConfigReader::optional_size(std::string_view keys,
                                                    std::optional<std::uint64_t> class_default) {
  if (const auto value = find(keys)) return to_size(*value);
  if (is_null(keys) || !class_default) return std::nullopt;
  took_default(keys, std::to_string(*class_default), *class_default);
  return Quantity(first_key(keys), *class_default);
}

std::uint64_t ConfigReader::number(std::string_view keys, std::uint64_t class_default) {
  if (const auto value = find(keys)) return to_number(*value);
  took_default(keys, std::to_string(class_default), class_default);
  return class_default;
}

std::optional<std::uint64_t> ConfigReader::optional_number(std::string_view keys,
                                                           std::optional<std::uint64_t> class_default) {
  if (const auto value = find(keys)) return to_number(*value);
  if (is_null(keys) || !class_default) return std::nullopt;
  took_default(keys, std::to_string(*class_default), *class_default);
  return class_default;
}

bool ConfigReader::flag(std::string_view keys, bool class_default) {
  if (const auto value = find(keys)) {
    if (!value->json->is_boolean())
      fail(fmt::format("{} is {}, not true or false", value->key, value->json->type_name()));
    return value->json->get<bool>();
  }
  took_default(keys, class_default ? "true" : "false");
  return class_default;
}

std::string ConfigReader::text(std::string_view keys, std::string_view class_default) {
  if (const auto value = find(keys)) return json_string(*value->json, value->key, config_.source());
  took_default(keys, std::string(class_default));
  return std::string(class_default);
}

std::optional<double> ConfigReader::optional_real(std::string_view keys, double least, double most) const {
  const auto value = find(keys);
  if (!value) return std::nullopt;
  return to_real(*value->json, value->key, least, most);
}

double ConfigReader::to_real(const ParsedJson& value, std::string_view key, double least, double most) const {
  if (!value.is_number()) throw Error::input(fmt::format("{} is not a number", key)).in(config_.source());
  const double number = value.get<double>();
  if (!(number >= least && number <= most))
    throw Error::input(fmt::format("{} is {}: out of range [{:g}, {:g}]", key, number, least, most))
        .in(config_.source());
  return number;
}

const std::string& ConfigReader::to_text(const ParsedJson& value, std::string_view key) const {
  return json_string(value, key, config_.source());
}

std::optional<std::vector<std::uint64_t>> ConfigReader::numbers(std::string_view keys) {
  const auto value = find(keys);
  if (!value) return std::nullopt;
  if (!value->json->is_array()) fail(fmt::format("{} is not a list", value->key));
  std::vector<std::uint64_t> list;
  for (const ParsedJson& entry : *value->json) list.push_back(to_number({&entry, value->key + "[]"}));
  return list;
}

std::optional<std::vector<std::string>> ConfigReader::texts(std::string_view keys) {
  const auto value = find(keys);
  if (!value) return std::nullopt;
  if (!value->json->is_array()) fail(fmt::format("{} is not a list", value->key));
  std::vector<std::string> list;
  for (const ParsedJson& entry : *value->json)
    list.push_back(json_string(entry, value->key + "[]", config_.source()));
  return list;
}

bool ConfigReader::tied_embeddings(bool class_default) {
  constexpr std::string_view key = "tie_word_embeddings";
  const ParsedJson* outer = member(config_.document(), key);
  if (outer != nullptr && (!find(key) || document_ties(config_.document()))) {
    if (!outer->is_boolean()) fail(fmt::format("{} is {}, not true or false", key, outer->type_name()));
    return outer->get<bool>();
  }
  return flag(key, class_default);
}

Quantity ConfigReader::quotient(const Quantity& numerator, const Quantity& denominator, std::string name) {
  require_divides(denominator, numerator);
  return {std::move(name), numerator.value() / denominator.value()};
}

void ConfigReader::require_divides(const Quantity& divisor, const Quantity& dividend) {
  if (divisor.value() != 0 && dividend.value() % divisor.value() == 0) return;
  fail(fmt::format("{} {} is not divisible by {} {}", dividend.symbols(), dividend.value(), divisor.symbols(),
                   divisor.value()));
}

}  // namespace assay
