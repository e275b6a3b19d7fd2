// Two sums of products that decay from one token to another, each channel at its own speed.
#pragma once

#include <cstddef>

namespace assay::cpu {

struct DecayedDots {
  const double *to, *from;  // of each channel, from no smaller than to: e^(to - from)
  const float *k, *a, *b;
  std::size_t count;
};
struct DotPair {
  float a = 0, b = 0;
};
// Σ a k e^(to - from), Σ b k e^(to - from).
DotPair decayed_dots(const DecayedDots& of);

}  // namespace assay::cpu
