// Blocks of E4M3 codes under a scale each to BF16, and what that changed, without float32 on the way.
//
// Under one scale s there are 127 magnitudes. A normal one is (8 + m)·2^(E-10)·s with a mantissa m and an exponent E: its
// product and its rounding are those of E = 1 times a power of two, as long as no product leaves the normal numbers. So
// sixteen numbers (the eight subnormal ones and E = 1) and a shift into the exponent give all bits, and how often each
// magnitude occurs gives the sums of errors, in double, exactly but for a rounding a magnitude.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/numeric/float_loops.h"

namespace assay {

struct Bf16Block {
  DifferenceSums sums;  // of float32(code) × s, rounded once, and its BF16
  float largest = 0;    // magnitude of a product
};

// A block of `rows` × `columns` codes; rows begin `stride` elements apart in `codes` and in `out`. Nullopt where a code is
// NaN or |scale| is no number from 2^-120 to 2^118: then what lies in `out` means nothing.
std::optional<Bf16Block> e4m3_to_bf16(const std::uint8_t* codes, std::size_t rows, std::size_t columns,
                                      std::size_t stride, float scale, std::uint16_t* out);

}  // namespace assay
