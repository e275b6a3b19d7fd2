#include "core/numeric/gguf_quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/numeric/codec.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_layout.h"
#include "core/system/error.h"

namespace assay {
namespace {

void set_half(gguf_blocks::Half& half, float x) {
  const auto code = static_cast<std::uint16_t>(encode(kF16, x, Overflow::special));
  std::memcpy(half.bytes, &code, sizeof code);
}

void quantize_q8_0(const float* x, std::byte* out) {
  gguf_blocks::Q8_0 block;
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float d = largest / 127;
  const float inverse = d != 0 ? 1 / d : 0;
  set_half(block.d, d);
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = std::isinf(inverse) ? 0 : static_cast<std::int8_t>(std::round(x[i] * inverse));
  }
  std::memcpy(out, &block, sizeof block);
}

}  // namespace

bool gguf_can_quantize_to(ElementType type) {
  switch (type) {
    case ElementType::F32:
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::Q8_0: return true;
    default: return false;
  }
}

std::optional<QuantizeFault> gguf_quantize(ElementType type, std::span<const float> values, std::byte* out) {
  if (!gguf_can_quantize_to(type)) {
    throw Error::input("no quantizer into " + std::string(name(type)));
  }
  const ElementInfo& form = info(type);
  if (values.size() % form.block_elements != 0) throw Error::internal("values do not fill whole blocks");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return QuantizeFault{QuantizeFault::Kind::not_finite, i};
  }
  if (form.block_elements == 1) {
    simd::encode(type, values, Overflow::special, out);
    return std::nullopt;
  }
  for (std::size_t at = 0; at < values.size(); at += 32, out += form.block_bytes) {
    quantize_q8_0(values.data() + at, out);
  }
  return std::nullopt;
}

}  // namespace assay
