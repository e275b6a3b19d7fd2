// By how much a product may be off because its operands were rounded first, from what the formats are: stated
// here once more, so that a wrong constant of the reference does not excuse itself.
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

namespace assay {

struct OperandRounding {
  enum class Step : std::uint8_t {
    power_of_two,     // 2^(⌊log₂ max⌋ - bits + 1): `bits` beside the sign, under a power of two
    part_of_largest,  // max / (2^bits - 1)
    e4m3,             // 2^-3 of the power of two below x, down to 2^-9, in units of max / 448
  };
  Step step;
  int bits;
  std::size_t group;  // inputs under one scale; 0: all of a token
};

inline constexpr OperandRounding kFp8Inputs = {OperandRounding::Step::e4m3, 3, 128};
inline constexpr OperandRounding kInt8Inputs = {OperandRounding::Step::part_of_largest, 7, 0};
inline constexpr OperandRounding kInt8BlockInputs = {OperandRounding::Step::part_of_largest, 7, 32};
// Times GGUF's integers; times BF16 and F16, and these themselves.
inline constexpr OperandRounding kInt16Inputs = {OperandRounding::Step::power_of_two, 15, 32};
inline constexpr OperandRounding kInt16InputsOfFloats = {OperandRounding::Step::power_of_two, 14, 32};
inline constexpr OperandRounding kInt16Weights = {OperandRounding::Step::power_of_two, 12, 32};

// d of each number of a row.
std::vector<double> steps_of(const OperandRounding& rounding, std::span<const double> row);

// x · Wᵀ of the operands as they were, and 6σ. `w` [outputs, inputs]; `of_w`: nullopt where it is not
// rounded.
Unrounded unrounded_product(ReferenceOps& wide, const Filled& x, const std::vector<float>& w,
                            const OperandRounding& of_x, const std::optional<OperandRounding>& of_w);

}  // namespace assay
