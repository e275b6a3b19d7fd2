#include "core/model/fused_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/system/text.h"

namespace assay {
namespace {

// "model.layers.0.self_attn" of "….self_attn.q_proj.weight"; "….mlp.experts" of "….mlp.experts.3.up_proj.weight" and of
// "….mlp.experts.up_proj". Biases are another thing than weights.
std::string holder_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, bool>, 3> kEndings = {
      {{".weight", false}, {".bias", true}, {"_bias", true}}};
  bool bias = false;
  for (const auto& [ending, is_bias] : kEndings) {
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    bias = is_bias;
    break;
  }
  const auto cut_last = [&] { name = name.substr(0, std::min(name.rfind('.'), name.size())); };
  cut_last();
  if (parse_u64(name.substr(name.rfind('.') + 1))) cut_last();
  return std::string(name) + (bias ? " bias" : "");
}

}  // namespace

void FusedFaults::take_unknown(std::string_view name, std::uint64_t elements) {
  Side& stored = holders_[holder_of(name)].stored;
  if (stored.tensors++ == 0) stored.first = name;
  stored.elements += elements;
}

bool FusedFaults::take_missing(std::string_view name, std::uint64_t elements) {
  const auto at = holders_.find(holder_of(name));
  if (at == holders_.end()) return false;
  Side& missing = at->second.missing;
  if (missing.tensors++ == 0) missing.first = name;
  missing.elements += elements;
  return true;
}

bool FusedFaults::explain(std::string_view name) const {
  const auto at = holders_.find(holder_of(name));
  return at != holders_.end() && at->second.agrees();
}

std::optional<Finding> FusedFaults::finding() const {
  std::uint64_t stored = 0, missing = 0;
  const Holder* first = nullptr;
  for (const auto& [name, holder] : holders_) {
    if (!holder.agrees()) continue;
    if (first == nullptr) first = &holder;
    stored += holder.stored.tensors, missing += holder.missing.tensors;
  }
  if (first == nullptr) return std::nullopt;
  const bool fused = first->stored.tensors < first->missing.tensors;
  return Finding{
      Severity::error,
      "model.tensors_fused",
      fmt::format(
          "{} tensors hold {} the {} that the config asks for (\"{}\" where \"{}\" is looked for, as many "
          "elements in all): loaders that go by these names find none of them",
          stored, fused ? "several in one of" : "in parts", missing, first->stored.first,
          first->missing.first),
      {},
      {},
      {},
      fused ? "take them apart, as releases of this family have them"
            : "join them, as releases of this family do"};
}

}  // namespace assay
