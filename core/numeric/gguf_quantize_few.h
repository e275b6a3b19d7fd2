// Private to gguf_quantize*.cpp.
#pragma once

#include <cstddef>

#include "core/numeric/element_type.h"

namespace assay::gguf_blocks {

// Whole blocks of NVFP4, TQ1_0, TQ2_0, Q1_0 or Q2_0.
void quantize_few(ElementType type, const float* x, std::size_t blocks, std::byte* out);

}  // namespace assay::gguf_blocks
