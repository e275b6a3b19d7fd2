// A state space: the steps that tokens take, and one token of one head.
#pragma once

#include "kernels/cpu/scan.h"

namespace assay::cpu {

// y = clamp(softplus(x + bias)); NaN stays.
struct StepSizes {
  const float *x, *bias;
  std::size_t count;
  float least, most;
  float* y;
};
void step_sizes(const StepSizes& of);

// kept [columns]: exp(-a Δ).
struct SpaceStep {
  StatePath::Place state;
  const float *x, *b, *c, *kept;
  float size, skip;
  std::size_t rows, columns;
  float* out;
};
void space_step(const SpaceStep& step);

}  // namespace assay::cpu
