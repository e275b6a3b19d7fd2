// The operations that touch each number once or twice: norms, gates, rotations. Memory-bound, so that what counts
// is that they run in vectors and, for many tokens, on all cores.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kWorthAThread = 1 << 15;  // elements of a piece

// y = x / √(mean(x²) + ε) · w over groups of w.size() columns; 1 + w is the caller's. float32, the mean's sum
// in vector lanes.
void rms_norm(const Matrix& x, std::span<const float> w, double epsilon, const Matrix& y, int jobs);

// gate · σ(gate) · up, and the other gated forms; y may be either operand's memory.
void gated(const Matrix& gate, const Matrix& up, const GatedActivation& form, const Matrix& y, int jobs);

void rope(const Matrix& x, const RopeCall& call, int jobs);  // changes x
void add(const Matrix& a, const Matrix& b, const Matrix& y, int jobs);

}  // namespace assay::cpu
