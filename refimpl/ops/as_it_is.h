// Numbers as a matrix of an arithmetic's storage, not rounded again: what another process computed, whole numbers.
// Of operations whose memory is the process's own.
#pragma once

#include <span>

#include "refimpl/ops/support.h"

namespace assay {

inline Matrix as_it_is(Ops& ops, std::span<const double> values, std::size_t rows, std::size_t columns) {
  Matrix y = ops.allocate(rows, columns);
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t i = 0; i < values.size(); ++i)
      y.row<T>(i / columns)[i % columns] = static_cast<T>(values[i]);
  });
  return y;
}

}  // namespace assay
