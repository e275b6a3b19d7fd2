// By how much a product may be off because its operands were rounded first, from what the formats are.
//
// Numbers rounded to multiples of d are off by d/√12 in the mean square, each by itself, so that a sum of
// products is off by
//
//   σ² = Σ_k (d_x[k]² w[k]² + x[k]² d_w[k]²) / 12
//
// and 6σ is beyond what it reaches: twelve terms or fewer cannot, and of more one sum in 5·10^8 would. A
// number rounded to half as many steps has twice the σ, and some of a few hundred sums leave 6σ.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/harness/cases.h"
#include "kernels/operands/rounded_operands.h"

namespace assay {

// Of the 8-bit arithmetics of the specification itself (refimpl/ops/w8a8.h).
inline constexpr OperandRounding kFp8Inputs = {OperandRounding::Step::e4m3, 3, 128};
inline constexpr OperandRounding kInt8Inputs = {OperandRounding::Step::part_of_largest, 7, 0};

// d of each number of a row.
std::vector<double> steps_of(const OperandRounding& rounding, std::span<const double> row);

// x · Wᵀ of the operands as they were, and 6σ. `w` [outputs, inputs].
Unrounded unrounded_product(ReferenceOps& wide, const Filled& x, const std::vector<float>& w,
                            const RoundedOperands& how);

}  // namespace assay
