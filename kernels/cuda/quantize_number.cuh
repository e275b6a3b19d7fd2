// The scale of a block, and the code of a number under it: core/numeric/block_quantizer.h's, bit for bit.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/quantize.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float largest_code(Code code) {
  return code == Code::i8 ? 127.0f : code == Code::e4m3 ? 448.0f : 57344.0f;
}

ASSAY_DEVICE float scale_of(float amax, Code code, bool power_of_two) {
  constexpr float kLeastMagnitude = 1e-4f, kLeastScale = 0x1p-126f;
  if (code != Code::i8 && amax < kLeastMagnitude) amax = kLeastMagnitude;
  if (amax == 0.0f) return 1.0f;
  float scale = amax / largest_code(code);
  if (scale < kLeastScale) scale = kLeastScale;
  if (!power_of_two) return scale;
  const std::uint32_t bits = bits_of(scale);
  return float_of(((bits >> 23) + ((bits & 0x7FFFFFu) != 0 ? 1u : 0u)) << 23);
}

ASSAY_DEVICE std::uint8_t code_of(float quotient, Code code) {
  switch (code) {
    case Code::e4m3: return from_float<e4m3>(quotient).bits;
    case Code::e5m2: return from_float<e5m2>(quotient).bits;
    case Code::i8: break;
  }
  const float nearest = rintf(quotient);
  return static_cast<std::uint8_t>(static_cast<std::int8_t>(nearest > 127.0f    ? 127.0f
                                                            : nearest < -128.0f ? -128.0f
                                                                                : nearest));
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
