// A sum of products in one loop with one accumulator, in one of the yardstick's orders (plain_ops.h).
#pragma once

#include <cstddef>

namespace assay {

template <class T>
T plain_dot(const T* x, const T* w, std::size_t n, int order) {
  T sum = 0;
  if (order == 0) {
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * w[i];
  } else if (order == 1) {
    for (std::size_t i = n; i-- > 0;) sum += x[i] * w[i];
  } else {
    for (std::size_t i = 0; i < n; i += 2) sum += x[i] * w[i];
    for (std::size_t i = 1; i < n; i += 2) sum += x[i] * w[i];
  }
  return sum;
}

}  // namespace assay
