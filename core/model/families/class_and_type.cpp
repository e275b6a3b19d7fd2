#include "core/model/class_and_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/families.h"

namespace assay {
namespace {

const Family* first_of_type(std::string_view type) {
  for (const Family* family : all_families())
    if (std::find(family->model_types.begin(), family->model_types.end(), type) != family->model_types.end())
      return family;
  return nullptr;
}

bool may_be_called(const Family& family, std::string_view type) {
  const auto& types = family.model_types;
  return family.name == type || std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

std::optional<Finding> class_unlike_type(const ModelConfig& config) {
  const bool has_code = config.document().contains("auto_map");  // which says what a type is
  if (config.origin() == ModelConfig::Origin::gguf || !config.nested_in().empty() || has_code)
    return std::nullopt;
  if (config.architecture().empty() || config.model_type().empty()) return std::nullopt;
  const Family* by_class = family_of_whole(config);
  const Family* by_type = first_of_type(config.model_type());
  if (by_class == nullptr || by_type == nullptr || may_be_called(*by_class, config.model_type()))
    return std::nullopt;
  return Finding{
      Severity::warning,
      "model.type_differs",
      fmt::format("architectures names {} ({}), and model_type \"{}\" is {}'s: engines go by the first, "
                  "transformers by the second",
                  config.architecture(), by_class->title, config.model_type(), by_type->title),
      "config.json",
      {},
      {},
      "make the two say the same model"};
}

}  // namespace assay
