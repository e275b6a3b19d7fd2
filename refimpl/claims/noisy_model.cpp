#include "refimpl/claims/noisy_model.h"

#include <algorithm>
#include <cstring>

namespace assay {

Matrix NoisyModel::logits(const Matrix& hidden, Ops& ops, const Taps& taps) const {
  const Matrix true_logits = model_.logits(hidden, ops, taps);
  std::vector<double> rows = ops.download(true_logits);
  const auto width = static_cast<std::ptrdiff_t>(true_logits.columns());
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &*row, sizeof bits);
    if ((bits * 0x9E3779B97F4A7C15 >> 32) % 3 == 0) std::rotate(row, row + 1, row + width);
  }
  return ops.upload(rows, true_logits.rows(), true_logits.columns());
}

}  // namespace assay
