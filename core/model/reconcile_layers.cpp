#include "core/model/reconcile_layers.h"

#include <fmt/format.h>

#include "core/model/stored_names.h"
#include "core/system/text.h"

namespace assay {
namespace {

// "4", "4 to 7", "4, 6 to 9".
std::string ranges(const std::set<std::uint64_t>& layers) {
  std::string text;
  for (auto at = layers.begin(); at != layers.end();) {
    const std::uint64_t first = *at;
    std::uint64_t last = first;
    while (++at != layers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ", ") +
            (first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
  }
  return text;
}

}  // namespace

bool LayerFaults::take_beyond(std::string_view name) {
  const auto stored = parse_stored_name(std::string(name));
  const std::string weight = stored && !stored->weight.empty() ? stored->weight : std::string(name);
  for (std::size_t begin = 0; begin < weight.size();) {
    const std::size_t end = std::min(weight.find('.', begin), weight.size());
    const auto number = parse_u64(std::string_view(weight).substr(begin, end - begin));
    if (!number) {
      begin = end + 1;
      continue;
    }
    if (*number < tree_.layers) return false;
    // The first number is the layer's; the kinds of layers at both ends are tried.
    for (const std::uint64_t other : {tree_.layers - 1, std::uint64_t{0}}) {
      if (!lookup_.find(weight.substr(0, begin) + std::to_string(other) + weight.substr(end))) continue;
      beyond_.insert(*number);
      ++beyond_tensors_;
      return true;
    }
    return false;
  }
  return false;
}

Findings LayerFaults::findings() const {
  Findings found;
  if (!beyond_.empty()) {
    found.push_back(
        {Severity::error,
         "model.layers_more",
         fmt::format("the config has {} layers, and {} tensors of layers {} are here: a model loaded by "
                     "it lacks them",
                     tree_.layers, beyond_tensors_, ranges(beyond_)),
         {},
         {},
         {},
         "set num_hidden_layers to what is stored"});
  }
  if (!absent_.empty()) {
    found.push_back(
        {Severity::error,
         "model.layers_missing",
         fmt::format("the config has {} layers, and no file holds anything of layers {}: {} tensors",
                     tree_.layers, ranges(absent_), absent_tensors_),
         {},
         {},
         {},
         "take the full checkpoint, or set num_hidden_layers to what is stored"});
  }
  return found;
}

}  // namespace assay
