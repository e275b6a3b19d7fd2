#include "convert/mtp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "convert/roles.h"
#include "core/formats/json.h"
#include "core/model/nested_config.h"
#include "core/system/text.h"

namespace assay {
namespace {

// The main ones; of an architecture nobody has described, as its config.json counts them.
std::optional<std::uint64_t> hidden_layers(const Checkpoint& checkpoint) {
  if (const auto tree = tree_of(checkpoint)) return tree->layers;
  if (checkpoint.config.empty()) return std::nullopt;
  const ParsedJson config = read_json(checkpoint.config);
  std::vector<const ParsedJson*> objects = language_model_nests(config);
  objects.insert(objects.begin(), &config);
  for (const ParsedJson* object : objects) {
    const auto layers = object->is_object() ? object->find("num_hidden_layers") : object->end();
    if (layers != object->end() && layers->is_number_unsigned()) return layers->get<std::uint64_t>();
  }
  return std::nullopt;
}

bool is_mtp(std::string_view name, std::uint64_t layers) {
  std::string_view before;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, dot - begin);
    if (part == "mtp" || part.starts_with("mtp_")) return true;
    if (before == "layers") {
      const auto layer = parse_u64(part);
      if (layer && *layer >= layers) return true;
    }
    before = part;
    begin = dot + 1;
  }
  return false;
}

Finding fault(std::string code, std::string message) {
  return {.severity = Severity::error,
          .code = std::move(code),
          .message = std::move(message),
          .file = {},
          .tensor = {},
          .offset = {},
          .remedy = {}};
}

}  // namespace

void select_mtp(ConversionPlan& plan, Mtp mtp) {
  const auto layers = hidden_layers(plan.checkpoint);
  if (!layers) {
    plan.findings.push_back(fault("convert.no_layer_count",
                                  "config.json has no num_hidden_layers: which layers are for multi-token "
                                  "prediction cannot be told"));
    return;
  }
  const auto leaves = [&](std::string_view name) { return is_mtp(name, *layers) != (mtp == Mtp::only); };
  bool any = false;
  for (const CheckpointTensor& tensor : plan.checkpoint.tensors) {
    any |= is_mtp(tensor.name, *layers);
    plan.left_out.push_back(leaves(tensor.name));
  }
  if (!any) {
    plan.findings.push_back(
        fault("convert.no_mtp", fmt::format("none of {} tensors belongs to multi-token prediction layers",
                                            plan.checkpoint.tensors.size())));
  }
  std::erase_if(plan.stored.tensors, [&](const LogicalTensor& tensor) { return leaves(tensor.name); });
}

void drop_mtp_from_config(Json& config) {
  static constexpr std::array<const char*, 3> kCounts = {"num_nextn_predict_layers", "num_mtp_layers",
                                                         "mtp_num_hidden_layers"};
  for (const char* key : kCounts) {
    if (config.contains(key)) config[key] = 0;
  }
  for (const char* key : {"text_config", "llm_config"}) {
    if (config.contains(key) && config[key].is_object()) drop_mtp_from_config(config[key]);
  }
}

}  // namespace assay
