// From float32 to 8-bit codes with one scale a block, as FP8 and INT8 checkpoints hold weights.
//
//   s = max|w| / limit                 over the block; limit: the largest code
//   s = 2^ceil(log2 s)                 with ScaleRounding::power_of_two (DeepSeek's ue8m0)
//   q = round(w / s)                   float32 division, then to nearest even, saturating
//
// so that w ≈ q · s. A block of nothing but zeros takes the scale 1. A scale below the smallest normal
// float32 is raised to it: the quotients stay finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric/element_type.h"

namespace assay {

enum class ScaleRounding : std::uint8_t { none, power_of_two };

struct BlockQuantizer {
  ElementType codes = ElementType::F8_E4M3;  // any FP8, or I8
  std::uint64_t block_rows = 128, block_columns = 128;
  // 127.5 for I8 is compressed-tensors' convention: the codes then reach down to -128.
  float limit = 448.0F;
  ScaleRounding rounding = ScaleRounding::none;

  // The scale of a block whose largest magnitude is `amax` (finite).
  float scale_for(float amax) const;
};

// Largest magnitude of each block of `rows` × `columns` values, one row of blocks after another; a block may
// be cut off at the edge. False when some value is NaN or infinite.
bool block_amax(std::span<const float> values, std::uint64_t rows, std::uint64_t columns,
                std::uint64_t block_rows, std::uint64_t block_columns, std::span<float> amax);

// Codes for `rows` × `columns` values under the scales given, laid out as block_amax lays out its results.
// Returns how many values lay beyond the largest code even after rounding, and were clamped to it.
std::uint64_t quantize_with_scales(const BlockQuantizer& quantizer, std::span<const float> values,
                                   std::uint64_t rows, std::uint64_t columns, std::span<const float> scales,
                                   std::span<std::byte> codes);

// The way back, for one row: values[i] *= scales[i / block_columns], in float32.
void scale_row(std::span<float> values, std::uint64_t block_columns, const float* scales);

}  // namespace assay
