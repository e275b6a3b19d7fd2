#include "core/model/ignored_modules.h"

#include <algorithm>
#include <array>
#include <set>

namespace assay {
namespace {

constexpr std::string_view kWeightEnding = ".weight";

// Encoders of other things than text, and what joins them to the language model.
constexpr std::array<std::string_view, 16> kTowers = {
    "vision_tower",          "visual",         "vision_model", "vision_encoder",
    "vision_embed_tokens",   "image_tower",    "video_tower",  "audio_tower",
    "audio_model",           "speech_encoder", "embed_vision", "embed_audio",
    "multi_modal_projector", "mm_projector",   "connector",    "vision_language_adapter"};

std::string_view own_name(std::string_view module) {
  return module.substr(module.rfind('.') + 1);  // npos + 1: the whole
}

// A table that is looked up is no linear layer to anybody.
bool is_table(std::string_view module) {
  const std::string_view own = own_name(module);
  return (own.find("embed") != std::string_view::npos && own.find("proj") == std::string_view::npos) ||
         own == "wte" || own == "wpe";
}

std::string_view tower_of(std::string_view module) {
  for (const std::string_view tower : kTowers) {
    const auto at = module.find(tower);
    const bool is_part = at != std::string_view::npos && (at == 0 || module[at - 1] == '.') &&
                         at + tower.size() < module.size() && module[at + tower.size()] == '.';
    if (is_part) return tower;
  }
  return {};
}

bool chooses_experts(std::string_view module) {
  const std::string_view own = own_name(module);
  return own == "gate" || own == "router";
}

// From "layers." on: what stands before it, of a language model inside another, differs from loader to
// loader.
std::string_view from_layers(std::string_view module) {
  const auto at = module.find("layers.");
  const bool is_part = at != std::string_view::npos && (at == 0 || module[at - 1] == '.');
  return is_part ? module.substr(at) : std::string_view{};
}

bool is_nested(std::string_view module) {
  return !module.starts_with("model.layers.") && !module.starts_with("layers.");
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '.') out += '\\';
    out += c;
  }
  return out;
}

void sort_and_unify(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

void IgnoredModules::add(const LogicalTensor& tensor, bool becomes_plain) {
  const std::string_view name = tensor.name;
  has_head |= name == "lm_head.weight";
  const bool is_weight = name.ends_with(kWeightEnding);
  const std::string_view module =
      is_weight ? name.substr(0, name.size() - kWeightEnding.size()) : name.substr(0, name.rfind('.'));
  if (!becomes_plain) {
    quantized.emplace_back(module);
    return;
  }
  const bool is_matrix = tensor.shape.size() == 2 && is_weight && !is_table(module);
  const bool is_stack = tensor.shape.size() == 3 && name.find("expert") != std::string_view::npos &&
                        name.find('.') != std::string_view::npos;
  if (tensor.quantized() || (!is_matrix && !is_stack)) return;
  names.emplace_back(module);
  if (const std::string_view tower = tower_of(module); !tower.empty()) towers.emplace_back(tower);
}

void IgnoredModules::finish() {
  sort_and_unify(names);
  sort_and_unify(towers);
  sort_and_unify(quantized);
  // A tower that is quantized in part is listed module by module.
  std::erase_if(towers, [&](const std::string& tower) {
    return std::any_of(quantized.begin(), quantized.end(),
                       [&](const std::string& module) { return tower_of(module) == tower; });
  });
}

std::vector<std::string> IgnoredModules::for_compressed_tensors() const {
  std::vector<std::string> list = names;
  std::set<std::string> patterns;
  for (const std::string& tower : towers) patterns.insert("re:.*" + tower + "\\..*");
  const bool gates = std::any_of(names.begin(), names.end(), chooses_experts);
  if (gates && std::none_of(quantized.begin(), quantized.end(), chooses_experts))
    patterns.insert("re:.*\\.(gate|router)$");
  std::set<std::string_view> taken;
  for (const std::string& module : quantized) taken.insert(from_layers(module));
  for (const std::string& name : names) {
    if (name.ends_with(".lm_head")) patterns.insert("re:.*lm_head$");
    const std::string_view tail = from_layers(name);
    if (!tail.empty() && is_nested(name) && tower_of(name).empty() && !taken.contains(tail))
      patterns.insert("re:.*" + escaped(tail) + "$");
  }
  list.insert(list.end(), patterns.begin(), patterns.end());
  return list;
}

std::vector<std::string> IgnoredModules::for_modelopt() const {
  std::vector<std::string> list = names;
  for (const std::string& tower : towers) list.push_back("*" + tower + "*");
  return list;
}

std::vector<std::string> IgnoredModules::for_fp8() const {
  std::vector<std::string> list = names;
  for (const std::string& tower : towers) {
    list.push_back(tower);
    list.push_back("model." + tower);
  }
  return list;
}

}  // namespace assay
