#include "refimpl/models/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay {
namespace {

struct Found {
  const ParsedJson* value = nullptr;
  std::string key;
};

// In the language model's section, else in the document around it.
Found find(const ModelConfig& config, std::string_view keys) {
  for (const ParsedJson* object : {&config.text(), &config.document()}) {
    for (std::string_view rest = keys;;) {
      const auto bar = rest.find('|');
      const auto found = object->find(rest.substr(0, bar));
      if (found != object->end() && !found->is_null()) return {&*found, std::string(rest.substr(0, bar))};
      if (bar == std::string_view::npos) break;
      rest.remove_prefix(bar + 1);
    }
  }
  return {};
}

}  // namespace

std::optional<double> config_real(const ModelConfig& config, std::string_view keys, double least,
                                  double most) {
  const Found found = find(config, keys);
  if (found.value == nullptr) return std::nullopt;
  return json_real(*found.value, found.key, config.source(), least, most);
}

double json_real(const ParsedJson& value, std::string_view key, const std::filesystem::path& source,
                 double least, double most) {
  if (!value.is_number()) throw Error::input(fmt::format("{} is not a number", key)).in(source);
  const double number = value.get<double>();
  if (!(number >= least && number <= most))
    throw Error::input(fmt::format("{} is {}: out of range [{:g}, {:g}]", key, number, least, most))
        .in(source);
  return number;
}

std::string config_text(const ModelConfig& config, std::string_view key, std::string_view otherwise) {
  const Found found = find(config, key);
  if (found.value == nullptr) return std::string(otherwise);
  return json_string(*found.value, found.key, config.source());
}

bool config_flag(const ModelConfig& config, std::string_view key, bool otherwise) {
  const Found found = find(config, key);
  if (found.value == nullptr) return otherwise;
  if (!found.value->is_boolean())
    throw Error::input(fmt::format("{} is not true or false", found.key)).in(config.source());
  return found.value->get<bool>();
}

bool config_is_null(const ModelConfig& config, std::string_view key) {
  const auto found = config.text().find(key);
  return found != config.text().end() && found->is_null();
}

const ParsedJson* config_object(const ModelConfig& config, std::string_view key) {
  const Found found = find(config, key);
  if (found.value == nullptr) return nullptr;
  if (!found.value->is_object())
    throw Error::input(fmt::format("{} is not an object", found.key)).in(config.source());
  return found.value;
}

}  // namespace assay
