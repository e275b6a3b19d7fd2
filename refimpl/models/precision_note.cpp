#include "refimpl/models/precision_note.h"

#include <fmt/format.h>

#include <algorithm>

#include "refimpl/ops/weight_view.h"

namespace assay {

std::string precision_note(const Weights& weights, Precision precision, std::string_view kernels) {
  const bool of_kernels = precision == Precision::int16 || precision == Precision::int8_block;
  if (of_kernels && kernels == "reference")
    return fmt::format("{} is left to kernels (--kernels cpu): the reference computes as under f32",
                       name(precision));

  constexpr ElementType kFp8[] = {ElementType::F8_E4M3, ElementType::F8_E5M2};
  constexpr ElementType kInt8[] = {ElementType::I8};
  const std::vector<CheckpointTensor>& tensors = weights.checkpoint().tensors;
  switch (precision) {
    case Precision::fp8_block:
      if (weights.count_scaled(kFp8) > 0) return {};
      return "no weight is stored in FP8 with scales: everything is computed as under bf16";
    case Precision::int8:
      if (weights.count_scaled(kInt8) > 0) return {};
      return "no weight is stored in INT8 with scales: everything is computed as under bf16";
    case Precision::int8_block:
      if (std::any_of(tensors.begin(), tensors.end(),
                      [](const CheckpointTensor& t) { return is_integer_block(t.type); }))
        return {};
      return "no weight is stored in GGUF's blocks of integers: everything is computed as under f32";
    default: return {};
  }
}

}  // namespace assay
