// A weight's numbers as the reference multiplies them: decoded, and under bf16 rounded.
#pragma once

#include <algorithm>
#include <vector>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

// Rows of W as [outputs, inputs], whichever way it is stored.
template <class T>
class DecodedRows {
 public:
  DecodedRows(const WeightView& weight, const Arithmetic& arithmetic)
      : weight_(weight), arithmetic_(arithmetic) {
    if (!weight.input_major) return;
    std::vector<T> stored(weight.rows * weight.columns);  // [inputs, outputs]
    decode_rows(weight, 0, weight.rows, stored.data());
    transposed_.resize(stored.size());
    for (std::size_t i = 0; i < weight.rows; ++i) {
      for (std::size_t o = 0; o < weight.columns; ++o)
        transposed_[o * weight.rows + i] = stored[i * weight.columns + o];
    }
  }

  void read(std::size_t first, std::size_t count, std::vector<T>& out) const {
    out.resize(count * weight_.inputs());
    if (transposed_.empty())
      decode_rows(weight_, first, count, out.data());
    else
      std::copy_n(transposed_.begin() + static_cast<std::ptrdiff_t>(first * weight_.inputs()), out.size(),
                  out.begin());
    if (!arithmetic_.bfloat16() || weight_.type == ElementType::BF16) return;
    for (T& value : out) value = static_cast<T>(arithmetic_.round(value));
  }

 private:
  const WeightView& weight_;
  const Arithmetic& arithmetic_;
  std::vector<T> transposed_;
};

}  // namespace assay
