#include "core/model/families/told_layers.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace assay::families {

bool visit_told_layers(const ConfigReader& config, std::size_t count,
                       const std::function<void(std::size_t layer, const ModelConfig& own)>& visit) {
  const auto told = config.config().text_section("per_layer_config");
  if (!told) return false;
  for (const auto& [key, value] : told->document().items()) {
    std::size_t layer = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), layer);
    config.require(parsed.ec == std::errc{} && parsed.ptr == key.data() + key.size() && layer < count,
                   "per_layer_config names a layer there is not");
    const auto own = told->section(key);
    config.require(own.has_value(), "per_layer_config holds what is no object");
    visit(layer, *own);
  }
  return true;
}

}  // namespace assay::families
