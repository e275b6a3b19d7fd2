#include "refimpl/models/alibi.h"

#include <cmath>

#include "refimpl/ops/arithmetic.h"

namespace assay {

std::vector<double> alibi_slopes(std::size_t heads, double exponent) {
  std::size_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  std::vector<double> slopes;
  for (std::size_t i = 1; i <= whole; ++i)
    slopes.push_back(std::exp2(-exponent * static_cast<double>(i) / static_cast<double>(whole)));
  for (std::size_t i = 1; slopes.size() < heads; i += 2)
    slopes.push_back(std::exp2(-exponent * static_cast<double>(i) / static_cast<double>(2 * whole)));
  return slopes;
}

// Falcon: transformers' build_alibi_tensor; Step 1: vLLM 0.32's step1.py (use_alibi_sqrt).
ScoreBiases slope_biases(SlopeForm form, const std::vector<double>& slopes, double scale) {
  return [form, &slopes, scale](const SequenceMetadata&, std::size_t head) -> ScoreBias {
    const double slope = slopes.at(head);
    if (form == SlopeForm::root)
      return [slope](std::size_t, std::size_t position, std::size_t key) {
        return -slope * std::sqrt(static_cast<double>(position - key));
      };
    static constexpr Arithmetic kShort = {Precision::bf16};
    return [slope = kShort.stage(slope), scale](std::size_t, std::size_t, std::size_t key) {
      return kShort.stage(slope * kShort.stage(static_cast<double>(key))) * scale;
    };
  };
}

}  // namespace assay
