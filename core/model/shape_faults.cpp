#include "core/model/shape_faults.h"

#include <fmt/format.h>

#include "core/model/reconcile_layers.h"
#include "core/model/stored_checks.h"

namespace assay {

void ShapeFaults::take(const CheckpointTensor& tensor, const Shape& asked, const TensorSpec& spec,
                       const std::string& kind, std::optional<std::uint64_t> layer) {
  const auto [at, is_new] = kinds_.emplace(std::tuple(kind, tensor.type, tensor.shape, asked), kinds_.size());
  if (is_new) {
    faults_.push_back({&tensor, asked, {}, {}});
    if (element_count(asked) == spec.elements.value()) faults_.back().symbols = spec.elements.symbols();
  }
  if (layer) faults_[at->second].layers.insert(*layer);
}

Findings ShapeFaults::findings(const Checkpoint& checkpoint) const {
  Findings found;
  for (const Fault& fault : faults_) {
    const std::string where =
        fault.layers.size() > 1 ? fmt::format(", as in all of layers {}", ranges(fault.layers)) : "";
    found.push_back({Severity::error,
                     "model.tensor_shape",
                     fmt::format("is {} {}{}, {} asks for {}{}{}", name(fault.first->type),
                                 shape_text(fault.first->shape), where, who_, shape_text(fault.asked),
                                 fault.symbols.empty() ? "" : " = ", fault.symbols),
                     checkpoint.files[fault.first->file].name,
                     fault.first->name,
                     {},
                     {}});
  }
  return found;
}

}  // namespace assay
