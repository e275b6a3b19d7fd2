// From a checkpoint's tensor name back to its place in the module tree.
#include <algorithm>
#include <array>

#include "core/model/module_tree.h"
#include "core/system/text.h"

namespace assay {
namespace {

// "model.layers.7.mlp.experts.3.up_proj.weight" -> "model.layers.{}.mlp.experts.{}.up_proj.weight", 7, 3.
// Only canonical numbers are indices: "07" is not 7.
struct Pattern {
  std::string text;
  std::vector<std::uint64_t> indices;
};

Pattern pattern_of_name(std::string_view name) {
  Pattern pattern;
  pattern.text.reserve(name.size() + 4);
  while (true) {
    const auto dot = name.find('.');
    const std::string_view segment = name.substr(0, dot);
    const bool digit_first = !segment.empty() && segment[0] >= '0' && segment[0] <= '9';
    const auto number = digit_first ? parse_u64(segment) : std::nullopt;
    if (number && (segment == "0" || segment[0] != '0')) {
      pattern.indices.push_back(*number);
      pattern.text += "{}";
    } else {
      pattern.text += segment;
    }
    if (dot == std::string_view::npos) return pattern;
    pattern.text += '.';
    name.remove_prefix(dot + 1);
  }
}

std::string pattern_of_template(std::string_view name) {
  std::string text(name);
  for (const std::string_view placeholder : {"{layer}", "{expert}"}) {
    for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at)) {
      text.replace(at, placeholder.size(), "{}");
    }
  }
  return text;
}

bool contains(const std::vector<std::uint64_t>& sorted, std::uint64_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

}  // namespace

TensorLookup::TensorLookup(const ModuleTree& tree) : tree_(tree) {
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    Entry entry{&spec, {}, {}, where.mtp};
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) entry.layers = module->repeat.indices;
      if (module->repeat.over == Repeat::Over::experts) entry.experts = module->repeat.indices;
    }
    entries_[pattern_of_template(spec.name)].push_back(std::move(entry));
  });
}

std::optional<TensorLookup::Found> TensorLookup::find_exactly(std::string_view name) const {
  const Pattern pattern = pattern_of_name(name);
  const auto entries = entries_.find(pattern.text);
  if (entries == entries_.end()) return std::nullopt;
  for (const Entry& entry : entries->second) {
    // Indices stand in the order layer, expert in every known checkpoint.
    const std::size_t wanted = (entry.layers.empty() ? 0 : 1) + (entry.experts.empty() ? 0 : 1);
    if (pattern.indices.size() != wanted) continue;  // a hostile name may hold "{}" itself
    std::size_t next = 0;
    TensorIndices indices;
    if (!entry.layers.empty()) indices.layer = pattern.indices[next++];
    if (!entry.experts.empty()) indices.expert = pattern.indices[next++];
    if (!entry.layers.empty() && !contains(entry.layers, indices.layer)) continue;
    if (!entry.experts.empty() && !contains(entry.experts, indices.expert)) continue;
    return Found{entry.spec, indices, entry.mtp};
  }
  return std::nullopt;
}

std::optional<TensorLookup::Found> TensorLookup::find(std::string_view name) const {
  if (auto found = find_exactly(name)) return found;
  for (const PrefixAlias& alias : tree_.aliases) {
    if (!name.starts_with(alias.alternative)) continue;
    if (auto found = find_exactly(alias.canonical + std::string(name.substr(alias.alternative.size()))))
      return found;
  }
  return std::nullopt;
}

}  // namespace assay
