#include "core/model/derived_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/formats/json.h"
#include "core/model/derived_keys.h"
#include "core/model/gguf_rules.h"
#include "core/model/reconcile_layers.h"

namespace assay {
namespace {

using Shape = std::vector<std::uint64_t>;
using Numbers = std::set<std::uint64_t>;

// Layers that hold the same tensors in the same shapes.
struct LayerKind {
  Numbers layers;
  std::map<std::string, std::map<Shape, Numbers>>
      tensors;  // by template and shape: of which experts; {} of none
};

// Layers with one prefix: "model.layers".
struct LayerStack {
  std::vector<LayerKind> kinds;
  std::size_t layers() const {
    std::size_t all = 0;
    for (const LayerKind& kind : kinds) all += kind.layers.size();
    return all;
  }
  std::uint64_t first() const {
    std::uint64_t least = UINT64_MAX;
    for (const LayerKind& kind : kinds) least = std::min(least, *kind.layers.begin());
    return least;
  }
  std::uint64_t end() const {  // behind the last number
    std::uint64_t last = 0;
    for (const LayerKind& kind : kinds) last = std::max(last, *kind.layers.rbegin() + 1);
    return last;
  }
};

void add_tensors(LayerKind& kind, const Module& module, const Numbers& experts) {
  for (const TensorSpec& spec : module.tensors)
    kind.tensors[spec.name][spec.shape].insert(experts.begin(), experts.end());
  for (const Module& child : module.children) {
    const auto& indices = child.repeat.indices;
    const bool of_experts = child.repeat.over == Repeat::Over::experts;
    add_tensors(kind, child, of_experts ? Numbers(indices.begin(), indices.end()) : experts);
  }
}

std::map<std::string, LayerStack> stacks_of(const std::vector<Module>& modules) {
  std::map<std::string, LayerStack> stacks;
  for (const Module& module : modules) {
    if (module.repeat.over != Repeat::Over::layers || module.repeat.indices.empty()) continue;
    LayerKind kind;
    kind.layers.insert(module.repeat.indices.begin(), module.repeat.indices.end());
    add_tensors(kind, module, {});
    stacks[module.path.substr(0, module.path.rfind(".{layer}"))].kinds.push_back(std::move(kind));
  }
  return stacks;
}

Finding finding(Severity severity, std::string code, std::string message, std::string remedy = {},
                std::string tensor = {}) {
  return {severity, std::move(code), std::move(message), {}, std::move(tensor), {}, std::move(remedy)};
}

// --- against the config --------------------------------------------------------------------------------------------

// One stack has them, or several together, or those for multi-token prediction are among them.
bool agree(std::uint64_t told, const std::map<std::string, LayerStack>& stacks, std::uint64_t predicting) {
  std::uint64_t sum = 0;
  for (const auto& [prefix, stack] : stacks) {
    const std::uint64_t here = stack.layers();
    sum += here;
    for (const std::uint64_t number : {here, stack.end()})
      if (told == number || told == number + predicting || told + predicting == number) return true;
  }
  return told == sum || told == sum + predicting;
}

void check_layers(const ModuleTree& tree, const ModelConfig& config,
                  const std::map<std::string, LayerStack>& stacks, Findings& findings) {
  const auto told = told_layers(config);
  if (!told || stacks.empty()) return;
  std::uint64_t predicting = told_count(config, {"num_nextn_predict_layers"}).value_or(ToldCount{}).count;
  for (const auto& [prefix, stack] : stacks_of(tree.mtp)) predicting = std::max(predicting, stack.layers());
  if (agree(told->count, stacks, predicting)) return;
  std::string here;
  std::uint64_t most = 0;
  for (const auto& [prefix, stack] : stacks) {
    here += fmt::format("{}{} of {}", here.empty() ? "" : ", ", stack.layers(), prefix);
    most = std::max<std::uint64_t>(most, stack.layers());
  }
  // HRM-Text, whose GGUFs are written here and not read back: a token passes the same layers several times.
  if (most > 0 && told->count % most == 0 && is_written_as_gguf(tree.architecture)) return;
  // Of several stacks each may have a count of its own; of a single layer a model may make many passes.
  const bool certain = stacks.size() == 1 && most > 1;
  findings.push_back(finding(
      certain ? Severity::error : Severity::warning,
      told->count > most ? "model.layers_missing" : "model.layers_more",
      fmt::format("the config has {} layers ({}), and stored are {}", told->count, told->key, here),
      told->count > most ? fmt::format("take the full checkpoint, or set {} to what is stored", told->key)
                         : fmt::format("set {} to what is stored", told->key)));
}

// --- a layer against its siblings ----------------------------------------------------------------------------------

// The one thing in which a layer differs from those of another kind.
struct Deviation {
  enum class Of { absent, shape, experts } of;
  std::string name;
  Shape is, others;  // shape
  Numbers lost;      // experts
};

Numbers experts_of(const std::map<Shape, Numbers>& shapes) {
  Numbers all;
  for (const auto& [shape, experts] : shapes) all.insert(experts.begin(), experts.end());
  return all;
}

Numbers without(const Numbers& all, const Numbers& some) {
  Numbers rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
  return rest;
}

// nullopt: they differ in nothing, in more, or in what `one` has beyond the others.
std::optional<Deviation> lone_deviation(const LayerKind& one, const LayerKind& others) {
  std::vector<Deviation> found;
  for (const auto& [name, shapes] : one.tensors)
    if (!others.tensors.contains(name)) return std::nullopt;
  for (const auto& [name, shapes] : others.tensors) {
    const auto own = one.tensors.find(name);
    if (own == one.tensors.end()) {
      found.push_back({Deviation::Of::absent, name, {}, {}, {}});
    } else if (own->second != shapes) {
      const bool same = own->second.size() == shapes.size() &&
                        std::equal(shapes.begin(), shapes.end(), own->second.begin(),
                                   [](const auto& a, const auto& b) { return a.first == b.first; });
      if (same)
        found.push_back(
            {Deviation::Of::experts, name, {}, {}, without(experts_of(shapes), experts_of(own->second))});
      else
        found.push_back({Deviation::Of::shape, name, own->second.begin()->first, shapes.begin()->first, {}});
    }
  }
  const auto is_of_experts = [](const Deviation& d) { return d.of == Deviation::Of::experts; };
  const bool experts_alone = std::all_of(found.begin(), found.end(), is_of_experts);
  if (found.empty() || (found.size() > 1 && !experts_alone)) return std::nullopt;
  return found.front().of == Deviation::Of::experts && found.front().lost.empty()
             ? std::nullopt
             : std::optional(found.front());
}

std::string text_of(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// A dimension of the others that the config names the width of the whole model.
bool contradicts_width(const Deviation& deviation, std::uint64_t hidden_size) {
  if (deviation.of != Deviation::Of::shape || deviation.is.size() != deviation.others.size()) return false;
  for (std::size_t i = 0; i < deviation.is.size(); ++i)
    if (deviation.others[i] == hidden_size && deviation.is[i] != hidden_size) return true;
  return false;
}

Finding told_of(const Deviation& deviation, std::uint64_t layer, const LayerKind& others,
                const ModuleTree& tree, const std::optional<ToldCount>& experts) {
  const std::string siblings = fmt::format("layers {}", ranges(others.layers));
  const std::string name = expand(deviation.name, {layer, 0});
  switch (deviation.of) {
    case Deviation::Of::absent:
      return finding(
          Severity::warning, "model.layer_differs",
          fmt::format("is not here, and {} have it and are otherwise as layer {} is", siblings, layer),
          "compare the file with its source", name);
    case Deviation::Of::shape:
      return finding(contradicts_width(deviation, tree.hidden_size) ? Severity::error : Severity::warning,
                     "model.layer_differs",
                     fmt::format("is {}, and {} in {}, which are otherwise as layer {} is",
                                 text_of(deviation.is), text_of(deviation.others), siblings, layer),
                     "compare the file with its source", name);
    case Deviation::Of::experts: break;
  }
  // With as many as the config has in the others, the layer has fewer than it says.
  const auto whole = others.tensors.find(deviation.name);
  const bool told =
      experts && whole != others.tensors.end() && experts_of(whole->second).size() == experts->count;
  return finding(
      told ? Severity::error : Severity::warning, "model.layer_differs",
      fmt::format("layer {} lacks experts {}, which {} have{}", layer, ranges(deviation.lost), siblings,
                  told ? fmt::format(", and {} is {}", experts->key, experts->count) : ""),
      "compare the file with its source");
}

// Several layers, each with a change of its own, are a design.
void check_siblings(const LayerStack& stack, const ModuleTree& tree, const std::optional<ToldCount>& experts,
                    Findings& findings) {
  Findings found;
  for (const LayerKind& one : stack.kinds) {
    if (one.layers.size() != 1) continue;
    for (const LayerKind& others : stack.kinds) {
      if (others.layers.size() < 2) continue;
      const auto deviation = lone_deviation(one, others);
      if (!deviation) continue;
      // A first layer does without what the embedding has done for it: ModernBERT's has no norm, Zaya's router no state.
      if (deviation->of == Deviation::Of::absent && *one.layers.begin() == stack.first()) break;
      found.push_back(told_of(*deviation, *one.layers.begin(), others, tree, experts));
      break;
    }
  }
  if (found.size() > std::max<std::size_t>(1, stack.layers() / 8)) return;
  findings.insert(findings.end(), found.begin(), found.end());
}

}  // namespace

Findings derived_faults(const ModuleTree& tree, const ModelConfig& config) {
  Findings findings;
  const auto stacks = stacks_of(tree.modules);
  const auto experts = told_experts(config);
  check_layers(tree, config, stacks, findings);
  for (const auto* modules : {&tree.modules, &tree.towers}) {
    for (const auto& [prefix, stack] : stacks_of(*modules)) check_siblings(stack, tree, experts, findings);
  }
  return findings;
}

}  // namespace assay
