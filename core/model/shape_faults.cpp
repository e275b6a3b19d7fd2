#include "core/model/shape_faults.h"

#include <fmt/format.h>

#include "core/model/stored_checks.h"

namespace assay {

void ShapeFaults::take(const CheckpointTensor& tensor, const TensorSpec& spec, const std::string& file) {
  ++tensors_;
  const auto [place, is_new] = places_.try_emplace({&spec, tensor.shape}, kinds_.size());
  if (!is_new) {
    ++kinds_[place->second].more;
    return;
  }
  kinds_.push_back({{Severity::error,
                     "model.tensor_shape",
                     fmt::format("is {} {}, the config asks for {} = {}", name(tensor.type),
                                 shape_text(tensor.shape), shape_text(spec.shape), spec.elements.symbols()),
                     file,
                     tensor.name,
                     {},
                     {}},
                    0});
}

Findings ShapeFaults::findings() const {
  Findings findings;
  for (const Kind& kind : kinds_) {
    Finding finding = kind.first;
    if (kind.more > 0)
      finding.message += fmt::format("; so {} {} more of its kind", kind.more == 1 ? "is" : "are", kind.more);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace assay
