#include "core/numeric/block_quantizer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "core/numeric/codec_simd.h"
#include "core/numeric/float_loops.h"
#include "core/numeric/row_quantizer.h"
#include "core/system/error.h"

namespace assay {
namespace {

// The first magnitude that does not round to a code: half a step above the largest one.
float first_clamped(ElementType codes) {
  switch (codes) {
    case ElementType::F8_E4M3: return 464.0F;      // 448, steps of 32; the tie goes to 448
    case ElementType::F8_E5M2: return 61440.0F;    // 57344, steps of 8192; the tie would go to infinity
    case ElementType::F8_E4M3FNUZ: return 248.0F;  // 240, steps of 16; as above
    case ElementType::F8_E5M2FNUZ: return 61440.0F;
    case ElementType::I8: return 128.0F;  // -128 is a code
    default: throw Error::internal("no block quantizer for this type");
  }
}

}  // namespace

float BlockQuantizer::scale_for(float amax) const {
  if (amax == 0.0F) return 1.0F;
  const float scale = std::max(amax / limit, std::numeric_limits<float>::min());
  if (rounding == ScaleRounding::none) return scale;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scale);
  const bool between_powers = (bits & 0x7FFFFFu) != 0;
  return std::bit_cast<float>(((bits >> 23) + (between_powers ? 1u : 0u)) << 23);
}

bool block_amax(std::span<const float> values, std::uint64_t rows, std::uint64_t columns,
                std::uint64_t block_rows, std::uint64_t block_columns, std::span<float> amax) {
  std::uint64_t first_block = 0;
  for (std::uint64_t top = 0; top < rows; top += block_rows) {
    std::uint64_t block = first_block;
    for (std::uint64_t row = top; row < std::min(rows, top + block_rows); ++row) {
      block = first_block;
      for (std::uint64_t begin = 0; begin < columns; begin += block_columns, ++block) {
        const std::uint64_t count = std::min(block_columns, columns - begin);
        const float largest =
            std::bit_cast<float>(largest_magnitude_bits(&values[row * columns + begin], count));
        const bool is_finite = largest <= std::numeric_limits<float>::max();
        if (!is_finite) return false;
        amax[block] = row == top ? largest : std::max(amax[block], largest);
      }
    }
    first_block = block;
  }
  return true;
}

std::uint64_t quantize_row(const BlockQuantizer& quantizer, std::span<const float> values,
                           const float* scales, std::span<float> quotients, std::span<std::byte> codes) {
  const float clamped_from = first_clamped(quantizer.codes);
  std::uint64_t clamped = 0;
  for (std::uint64_t begin = 0; begin < values.size(); begin += quantizer.block_columns, ++scales) {
    const std::uint64_t count = std::min<std::uint64_t>(quantizer.block_columns, values.size() - begin);
    clamped += divide_by(&values[begin], count, *scales, clamped_from, &quotients[begin]);
  }
  simd::encode(quantizer.codes, quotients.first(values.size()), Overflow::saturate, codes.data());
  return clamped;
}

std::uint64_t quantize_with_scales(const BlockQuantizer& quantizer, std::span<const float> values,
                                   std::uint64_t rows, std::uint64_t columns, std::span<const float> scales,
                                   std::span<std::byte> codes) {
  const std::uint64_t blocks = (columns + quantizer.block_columns - 1) / quantizer.block_columns;
  std::vector<float> quotients(columns);
  std::uint64_t clamped = 0;
  for (std::uint64_t row = 0; row < rows; ++row)
    clamped += quantize_row(quantizer, values.subspan(row * columns, columns),
                            &scales[row / quantizer.block_rows * blocks], quotients,
                            codes.subspan(row * columns, columns));
  return clamped;
}

void scale_row(std::span<float> values, std::uint64_t block_columns, const float* scales) {
  multiply_blocks(values.data(), values.size(), block_columns, scales);
}

}  // namespace assay
