#include "core/numeric/gguf_quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_quantize_few.h"
#include "core/numeric/gguf_quantize_kernels.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Kernel = void (*)(ElementType, const float*, std::size_t, std::byte*);

void quantize_float(ElementType type, const float* x, std::size_t count, std::byte* out) {
  simd::encode(type, std::span(x, count), Overflow::special, out);
}

Kernel kernel_for(ElementType type) {
  switch (type) {
    case ElementType::F32:
    case ElementType::F16:
    case ElementType::BF16: return quantize_float;
    case ElementType::Q4_0:
    case ElementType::Q4_1:
    case ElementType::Q5_0:
    case ElementType::Q5_1:
    case ElementType::Q8_0:
    case ElementType::MXFP4: return gguf_blocks::quantize_plain;
    case ElementType::Q2_K:
    case ElementType::Q4_K:
    case ElementType::Q5_K: return gguf_blocks::quantize_scale_min;
    case ElementType::Q3_K:
    case ElementType::Q6_K: return gguf_blocks::quantize_symmetric;
    case ElementType::IQ4_NL:
    case ElementType::IQ4_XS: return gguf_blocks::quantize_codebook;
    case ElementType::Q1_0:
    case ElementType::Q2_0:
    case ElementType::TQ1_0:
    case ElementType::TQ2_0:
    case ElementType::NVFP4: return gguf_blocks::quantize_few;
    default: return nullptr;
  }
}

// Where a block's one or two scales are, and the bits that are all set in one that is NaN or infinite. Two
// bytes are read for each; MXFP4's scale is the first of them.
struct Scales {
  std::size_t first, count;
  std::uint16_t special;
};
constexpr std::uint16_t kHalf = 0x7C00, kPower = 0x00FF;

Scales scales_of(ElementType type) {
  switch (type) {
    case ElementType::F32:
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::NVFP4: return {0, 0, 0};
    case ElementType::Q4_1:
    case ElementType::Q5_1:
    case ElementType::Q4_K:
    case ElementType::Q5_K: return {0, 2, kHalf};
    case ElementType::Q2_K: return {offsetof(gguf_blocks::Q2_K, d), 2, kHalf};
    case ElementType::Q3_K: return {offsetof(gguf_blocks::Q3_K, d), 1, kHalf};
    case ElementType::Q6_K: return {offsetof(gguf_blocks::Q6_K, d), 1, kHalf};
    case ElementType::TQ1_0: return {offsetof(gguf_blocks::TQ1_0, d), 1, kHalf};
    case ElementType::TQ2_0: return {offsetof(gguf_blocks::TQ2_0, d), 1, kHalf};
    case ElementType::MXFP4: return {0, 1, kPower};
    default: return {0, 1, kHalf};
  }
}

float largest_input(ElementType type) {
  switch (type) {
    // What still rounds to the largest finite number: just below 65520, and the like in BF16.
    case ElementType::F16: return std::bit_cast<float>(0x477FEFFFu);
    case ElementType::BF16: return std::bit_cast<float>(0x7F7F7FFFu);
    case ElementType::F32:
    case ElementType::MXFP4: return std::numeric_limits<float>::max();
    case ElementType::NVFP4:
      return 6 * 448;  // the largest code under the largest scale
    // More than any block under halves can hold: 65504 * 128 * 32 at most, in Q6_K. Where sums overflow, from
    // about 10^13 up, ggml's search takes a group for zeros.
    default: return 4294967296;
  }
}

// The first block with a scale that is not finite; `blocks` where there is none.
std::size_t first_bad_scale(ElementType type, const std::byte* out, std::size_t blocks) {
  const Scales scales = scales_of(type);
  const std::size_t size = info(type).block_bytes;
  for (std::size_t b = 0; scales.count != 0 && b < blocks; ++b) {
    for (std::size_t i = 0; i < scales.count; ++i) {
      std::uint16_t code;
      std::memcpy(&code, out + b * size + scales.first + i * sizeof code, sizeof code);
      if ((code & scales.special) == scales.special) return b;
    }
  }
  return blocks;
}

}  // namespace

bool gguf_can_quantize_to(ElementType type) {
  return kernel_for(type) != nullptr;
}

std::optional<QuantizeFault> gguf_quantize(ElementType type, std::span<const float> values, std::byte* out) {
  const Kernel kernel = kernel_for(type);
  if (kernel == nullptr) throw Error::input("nothing quantizes into " + std::string(name(type)));
  const ElementInfo& form = info(type);
  if (values.size() % form.block_elements != 0)
    throw Error::internal(fmt::format("{} values in blocks of {}", values.size(), form.block_elements));
  using Kind = QuantizeFault::Kind;
  const float limit = largest_input(type);
  constexpr std::size_t kPiece = 4096;  // whole blocks of any type; stays in the first cache
  for (std::size_t at = 0; at < values.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, values.size() - at), blocks = count / form.block_elements;
    const float* const x = values.data() + at;
    if (const std::size_t i = gguf_blocks::first_beyond(x, count, limit); i < count) {
      return QuantizeFault{std::isfinite(x[i]) ? Kind::too_large : Kind::not_finite, at + i};
    }
    kernel(type, x, blocks, out);
    if (const std::size_t b = first_bad_scale(type, out, blocks); b < blocks) {
      return QuantizeFault{Kind::too_large, at + b * form.block_elements};
    }
    out += blocks * form.block_bytes;
  }
  return std::nullopt;
}

std::optional<QuantizeFault> gguf_quantize_row(ElementType type, std::span<const float> row,
                                               std::span<const float> importance, std::byte* out) {
  if (!gguf_blocks::can_weigh(type)) return gguf_quantize(type, row, out);
  const ElementInfo& form = info(type);
  if (row.size() % form.block_elements != 0 || importance.size() != row.size())
    throw Error::internal(fmt::format("{} values and the importance of {} in blocks of {}", row.size(),
                                      importance.size(), form.block_elements));
  using Kind = QuantizeFault::Kind;
  if (const std::size_t i = gguf_blocks::first_beyond(row.data(), row.size(), largest_input(type));
      i < row.size())
    return QuantizeFault{std::isfinite(row[i]) ? Kind::too_large : Kind::not_finite, i};
  gguf_blocks::quantize_weighted(type, row.data(), importance.data(), row.size(), out);
  const std::size_t blocks = row.size() / form.block_elements, bad = first_bad_scale(type, out, blocks);
  if (bad < blocks) return QuantizeFault{Kind::too_large, bad * form.block_elements};
  return std::nullopt;
}

}  // namespace assay
