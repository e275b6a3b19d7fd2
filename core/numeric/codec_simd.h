// The codecs of codec.h for whole rows, in vector code where that pays: bit for bit the same results.
#pragma once

#include <cstddef>
#include <span>

#include "core/numeric/codec.h"

namespace assay::simd {

// As assay::decode to float; vectors for BF16, F16 and the four FP8 types and I8.
void decode(ElementType type, std::span<const std::byte> stored, float* out);

// out[i] = decode(code i) × scales[i / block], rounded once to float.
void decode_scaled(ElementType type, std::span<const std::byte> stored, std::size_t block,
                   const float* scales, float* out);

// As assay::encode; vectors for the same types.
void encode(ElementType type, std::span<const float> values, Overflow overflow, std::byte* out);

}  // namespace assay::simd
