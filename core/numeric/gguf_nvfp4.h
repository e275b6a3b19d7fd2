// The arithmetic of GGUF's FP4 blocks that several files share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric/codec.h"

namespace assay {

namespace gguf_blocks {

// E2M1 doubled, so that it is an integer; the scales are halved in turn. Code 8, -0, is plain 0 here.
inline constexpr float kTwiceE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of an unsigned E4M3 scale. As in ggml, the sign bit is not looked at, and 0x7F (but not 0xFF) means 0.
inline float half_ue4m3(std::uint8_t code) {
  if (code == 0x7F) return 0;
  if (code == 0xFF) return 240;
  return decode(kE4M3FN, code & 0x7F) * 0.5F;
}

}  // namespace gguf_blocks

// Whole NVFP4 blocks under a further scale of the tensor's: every block scale is multiplied by it, and
// rounded, before the codes are.
void dequantize_nvfp4(std::span<const std::byte> blocks, float factor, float* out);

}  // namespace assay
