#include "core/model/renamed_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/model/stored_names.h"

namespace assay {
namespace {

constexpr std::size_t kNamesAsked = 2'000;  // of a checkpoint; enough for any shard to show its prefix

bool known(const TensorLookup& lookup, std::string_view name) {
  if (lookup.find(name)) return true;
  const auto stored = parse_stored_name(std::string(name));
  return stored && !stored->weight.empty() && lookup.find(stored->weight).has_value();
}

// "module.model." and "model." differ by "module." and "": whole parts they end with alike are taken off.
void drop_common_end(std::string_view& a, std::string_view& b) {
  while (!a.empty() && !b.empty()) {
    const auto part = [](std::string_view text) {
      return text.substr(0, text.size() - 1).rfind('.') + 1;  // npos + 1: 0
    };
    const std::size_t of_a = part(a), of_b = part(b);
    if (a.substr(of_a) != b.substr(of_b)) return;
    a = a.substr(0, of_a), b = b.substr(0, of_b);
  }
}

// What stands before "layers.0." and its like in names that go on alike.
std::set<std::pair<std::string, std::string>> candidates(const ModuleTree& tree,
                                                         const std::vector<std::string_view>& names) {
  std::set<std::pair<std::string, std::string>> found;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const auto at = spec.name.find("{layer}");
    if (!where.main() || at == std::string::npos || at == 0) return;
    const auto word = spec.name.rfind('.', at - 2);  // of "model.layers.{layer}": behind "model"
    const std::size_t begin = word == std::string::npos ? 0 : word + 1;
    std::uint64_t layer = 0;
    for (const Module* module : where.path)
      if (module->repeat.over == Repeat::Over::layers) layer = module->repeat.indices.front();
    const std::string wanted = expand(spec.name, {layer, 0}), rest = wanted.substr(begin);
    for (const std::string_view name : names) {
      if (!name.ends_with(rest) || name == wanted) continue;
      std::string_view has = name.substr(0, name.size() - rest.size());
      std::string_view should = std::string_view(wanted).substr(0, begin);
      if (!has.empty() && has.back() != '.') continue;
      drop_common_end(has, should);
      found.emplace(has, should);
    }
  });
  return found;
}

std::string cause(const std::string& stored) {
  if (stored == "module.") return " (saved out of DataParallel or DistributedDataParallel)";
  if (stored == "_orig_mod.") return " (saved out of torch.compile)";
  if (stored.find("base_model") != std::string::npos) return " (saved out of PEFT)";
  if (stored.find("language_model") != std::string::npos) return " (cut out of a model that sees)";
  if (stored.empty()) return " (saved without the model that holds the head)";
  return "";
}

}  // namespace

std::string PrefixFault::name(std::string_view stored_name, const TensorLookup& lookup) const {
  if (known(lookup, stored_name) || !stored_name.starts_with(stored)) return std::string(stored_name);
  return wanted + std::string(stored_name.substr(stored.size()));
}

Finding PrefixFault::finding() const {
  const std::string what =
      stored.empty()
          ? fmt::format("{} tensors lack the \"{}\" that this model's names begin with", tensors, wanted)
      : wanted.empty()
          ? fmt::format("{} tensors have \"{}\" before their names", tensors, stored)
          : fmt::format("the names of {} tensors begin with \"{}\" where this model's do with \"{}\"",
                        tensors, stored, wanted);
  return {Severity::error,
          "model.names_prefixed",
          what + cause(stored) + ": loaders that go by these names find none of them",
          {},
          {},
          {},
          stored.empty()   ? fmt::format("save it again with \"{}\" before those names", wanted)
          : wanted.empty() ? fmt::format("save it again without \"{}\"", stored)
                           : fmt::format("save it again with \"{}\" in place of \"{}\"", wanted, stored)};
}

std::optional<PrefixFault> find_prefix_fault(const ModuleTree& tree, const Checkpoint& checkpoint) {
  const TensorLookup lookup(tree);
  std::uint64_t found = 0;
  std::vector<std::string_view> strange;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (known(lookup, tensor.name))
      ++found;
    else
      strange.push_back(tensor.name);
  }
  if (strange.empty() || found > strange.size()) return std::nullopt;
  std::vector<std::string_view> asked = strange;
  if (asked.size() > kNamesAsked) asked.resize(kNamesAsked);
  for (auto& [stored, wanted] : candidates(tree, asked)) {
    PrefixFault fault{stored, wanted, 0};
    for (const std::string_view name : strange)
      if (name.starts_with(stored) && known(lookup, wanted + std::string(name.substr(stored.size()))))
        ++fault.tensors;
    if (fault.tensors * 10 >= strange.size() * 9) return fault;
  }
  return std::nullopt;
}

Checkpoint with_names(Checkpoint checkpoint, const PrefixFault& fault, const TensorLookup& lookup) {
  for (CheckpointTensor& tensor : checkpoint.tensors) tensor.name = fault.name(tensor.name, lookup);
  std::sort(checkpoint.by_name.begin(), checkpoint.by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    return checkpoint.tensors[a].name < checkpoint.tensors[b].name;
  });
  if (!checkpoint.index) return checkpoint;
  auto map = std::move(checkpoint.index->weight_map);
  checkpoint.index->weight_map.clear();
  for (auto& [name, file] : map)
    checkpoint.index->weight_map.emplace(fault.name(name, lookup), std::move(file));
  return checkpoint;
}

}  // namespace assay
