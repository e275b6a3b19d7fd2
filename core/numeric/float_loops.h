// Loops over float32 values that conversions spend their time in, in vectors with run-time dispatch. The
// results do not depend on the instruction set: elements are rounded one by one, and sums are those of eight
// lanes (element i goes to lane i mod 8), added up in order, with no fused operations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay {

// The bits of the largest magnitude; those of a NaN where there is one, for magnitudes are ordered as their
// bits are, Inf and NaN above all.
std::uint32_t largest_magnitude_bits(const float* values, std::size_t count);

// values[i] *= factors[i / block]
void multiply_blocks(float* values, std::size_t count, std::size_t block, const float* factors);
// out[i] = values[i] / divisor. Returns how many quotients lie beyond ±limit.
std::size_t divide_by(const float* values, std::size_t count, float divisor, float limit, float* out);

// Over x = before[i] and e = after[i] - before[i]. Within a whole run of 128 elements a lane's sixteen terms
// are added in float, which is off by 16·2⁻²⁴ at most, the runs in double; all of it in double where squares
// would leave float's range.
struct DifferenceSums {
  double before_squares = 0, error_squares = 0, products = 0;  // Σx², Σe², Σx·e
  double largest = 0;                                          // |e|; finite values are the caller's business
};
DifferenceSums difference_sums(const float* before, const float* after, std::size_t count);
// Finite values to BF16 (to nearest, even; infinite where too large), and the sums of what that changed.
DifferenceSums bf16_with_errors(const float* values, std::size_t count, std::uint16_t* codes);

}  // namespace assay
