// The operations that touch each number once or twice: norms, gates, rotations. Memory-bound, so that what counts
// is that they run in vectors and, for many tokens, on all cores.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kWorthAThread = 1 << 15;  // elements of a piece

// y = x / √(mean(x²) + ε) · w over groups of w.size() columns; 1 + w is the caller's. float32, the mean's sum
// in vector lanes. `bf16`, here and below: x are numbers of bfloat16, and what the reference rounds is rounded.
struct Norm {
  std::span<const float> w;
  double epsilon;
  bool bf16 = false, round_before_weight = false;  // NormForm::weight_last
};
void rms_norm(const Matrix& x, const Norm& norm, const Matrix& y, int jobs);

// gate · σ(gate) · up, and the other gated forms; y may be either operand's memory.
void gated(const Matrix& gate, const Matrix& up, const GatedActivation& form, bool bf16, const Matrix& y,
           int jobs);

void rope(const Matrix& x, const RopeCall& call, bool bf16, int jobs);  // changes x
void add(const Matrix& a, const Matrix& b, bool bf16, const Matrix& y, int jobs);
void round_to_bf16(const Matrix& y, int jobs);
void round_to_bf16(std::span<float> values);

}  // namespace assay::cpu
