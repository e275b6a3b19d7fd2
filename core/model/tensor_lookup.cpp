// From a checkpoint's tensor name back to its place in the module tree.
#include <algorithm>

#include "core/model/module_tree.h"
#include "core/model/name_numbers.h"
#include "core/system/text.h"

namespace assay {
namespace {

// "model.layers.7.mlp.experts.3.up_proj.weight" -> "model.layers.{}.mlp.experts.{}.up_proj.weight", 7, 3; "block_7.fc1" ->
// "block_{}.fc{}", 7, 1.
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
    const std::size_t number = number_begins(segment);
    pattern.text += segment.substr(0, number);
    if (number != std::string_view::npos) {
      pattern.indices.push_back(parse_u64(segment.substr(number)).value());
      pattern.text += "{}";
    }
    if (dot == std::string_view::npos) return pattern;
    pattern.text += '.';
    name.remove_prefix(dot + 1);
  }
}

bool contains(const std::vector<std::uint64_t>& sorted, std::uint64_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

}  // namespace

// The numbers of a template, in their order; pattern_of_name() leaves the same "{}" for each.
std::vector<TensorLookup::Slot> TensorLookup::slots_of(std::string_view name_template) {
  std::vector<Slot> slots;
  const std::string one_name = expand(name_template, {});
  for (const std::uint64_t number : pattern_of_name(one_name).indices)
    slots.push_back({Slot::Of::nothing, number});
  // expand() put a 0 for each placeholder: which of the numbers those are, the template says segment by segment.
  std::size_t next = 0;
  while (!name_template.empty()) {
    const auto dot = name_template.find('.');
    const std::string_view segment = name_template.substr(0, dot);
    if (segment.ends_with("{layer}"))
      slots[next++].of = Slot::Of::layers;
    else if (segment.ends_with("{expert}"))
      slots[next++].of = Slot::Of::experts;
    else if (!pattern_of_name(segment).indices.empty())
      ++next;
    if (dot == std::string_view::npos) break;
    name_template.remove_prefix(dot + 1);
  }
  return slots;
}

TensorLookup::TensorLookup(const ModuleTree& tree) : tree_(tree) {
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    Entry entry{&spec, slots_of(spec.name), {}, {}, where.mtp, where.tower};
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) entry.layers = module->repeat.indices;
      if (module->repeat.over == Repeat::Over::experts) entry.experts = module->repeat.indices;
    }
    entries_[pattern_of_name(expand(spec.name, {})).text].push_back(std::move(entry));
  });
}

std::optional<TensorIndices> TensorLookup::Entry::indices_of(
    const std::vector<std::uint64_t>& numbers) const {
  if (numbers.size() != slots.size()) return std::nullopt;  // a hostile name may hold "{}" itself
  TensorIndices indices;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    switch (slots[i].of) {
      case Slot::Of::nothing:
        if (numbers[i] != slots[i].fixed) return std::nullopt;
        break;
      case Slot::Of::layers:
        if (!contains(layers, numbers[i])) return std::nullopt;
        indices.layer = numbers[i];
        break;
      case Slot::Of::experts:
        if (!contains(experts, numbers[i])) return std::nullopt;
        indices.expert = numbers[i];
        break;
    }
  }
  return indices;
}

std::optional<TensorLookup::Found> TensorLookup::find_exactly(std::string_view name) const {
  const Pattern pattern = pattern_of_name(name);
  const auto entries = entries_.find(pattern.text);
  if (entries == entries_.end()) return std::nullopt;
  for (const Entry& entry : entries->second) {
    const auto indices = entry.indices_of(pattern.indices);
    if (indices) return Found{entry.spec, *indices, entry.mtp, entry.tower};
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
