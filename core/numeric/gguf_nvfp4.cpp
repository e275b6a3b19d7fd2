#include "core/numeric/gguf_nvfp4.h"

#include "core/numeric/gguf_layout.h"

namespace assay {

void dequantize_nvfp4(std::span<const std::byte> blocks, float factor, float* out) {
  using namespace gguf_blocks;
  for (std::size_t at = 0; at + sizeof(NVFP4) <= blocks.size(); at += sizeof(NVFP4)) {
    NVFP4 block;
    std::memcpy(&block, &blocks[at], sizeof block);
    for (int s = 0; s < 4; ++s) {
      const float scale = 2 * half_ue4m3(block.d[s]) * factor;
      for (unsigned half = 0; half < 2; ++half) {
        for (int j = 0; j < 8; ++j) *out++ = 0.5F * kTwiceE2M1[nibble(block.qs[8 * s + j], half)] * scale;
      }
    }
  }
}

}  // namespace assay
