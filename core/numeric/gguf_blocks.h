// Dequantization of every GGUF block type to float32, bit for bit as ggml's reference does it.
//
// "Bit for bit" is a claim about order: all arithmetic is float32, each product rounded where ggml rounds it
// (d * scale first, then times the quant; no fused multiply-add). Layouts: ggml-common.h; meaning:
// ggml-quants.c.
#pragma once

#include <cstddef>
#include <span>

#include "core/numeric/element_type.h"

namespace assay {

// `blocks` is a multiple of the type's block_bytes; `out` has room for block_elements each. Types that are
// not GGUF blocks are refused (Error).
void dequantize(ElementType type, std::span<const std::byte> blocks, float* out);

}  // namespace assay
