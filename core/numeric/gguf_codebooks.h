// The half of dequantize() whose quants are indices into a table. Private to gguf_*.cpp.
#pragma once

#include <cstddef>
#include <span>

#include "core/numeric/element_type.h"

namespace assay::gguf_blocks {

// False, and nothing done, for a type that is none of these.
bool dequantize_codebook(ElementType type, std::span<const std::byte> blocks, float* out);

}  // namespace assay::gguf_blocks
