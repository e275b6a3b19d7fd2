// The delta rule of one token of one head: the state read twice and written once.
#pragma once

#include "kernels/cpu/scan.h"

namespace assay::cpu {

inline constexpr std::size_t kDeltaStrip = 4;  // vectors of a state's row at a time

// kept [keys]: exp g.
struct DeltaStep {
  StatePath::Place state;
  const float *q, *k, *v, *kept;
  float beta;
  std::size_t keys, values;
  float* out;
};
void delta_step(const DeltaStep& step);

}  // namespace assay::cpu
