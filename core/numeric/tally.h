// The inner loop of TensorStatistics: counting codes by class without decoding them. Highway picks the
// instruction set.
//
// Floats are compared as integers. Read as sign and magnitude, codes are ordered as their values; flipping
// the magnitude bits of the negative ones makes that order the one of two's complement:
//     key(code) = code ^ (code < 0 ? 0x7F..F : 0)        key(-0) = -1, key(+0) = 0; its own inverse
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace assay {

// The magnitudes (codes without sign) at which the classes of a float type begin.
struct FloatClasses {
  std::int64_t first_normal;
  std::int64_t first_nonfinite;  // equal to first_nan where there is no Inf
  std::int64_t first_nan;
};

struct Tally {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t nonfinite = 0;  // NaN and Inf
  std::uint64_t zero = 0;
  std::uint64_t below_normal = 0;  // zeros and subnormals
  std::uint64_t negative = 0;      // below zero; no NaN
  // Of finite values, as keys; unsigned integers with the top bit flipped. The initial values mean: none yet.
  std::int64_t min_key = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_key = std::numeric_limits<std::int64_t>::min();

  bool operator==(const Tally&) const = default;
};

// Adds `count` elements of `bytes_each` (1, 2, 4 or 8) at any address.
void tally_floats(const std::byte* elements, std::size_t count, int bytes_each, const FloatClasses& classes,
                  Tally& tally);
void tally_integers(const std::byte* elements, std::size_t count, int bytes_each, bool is_signed,
                    Tally& tally);

}  // namespace assay
