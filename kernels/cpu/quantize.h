// Activations to 8 bits and back by core/numeric's vector codecs, rows shared out over threads: the bits that
// refimpl/ops/quantize.cpp says.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kQuantizePiece = 16;  // rows of a thread's piece

// Blocks are one row high.
QuantizedMatrix quantize_rows(const Matrix& x, const QuantizeRule& rule, int jobs);
void dequantize_rows(const QuantizedMatrix& q, const Matrix& y, int jobs);

}  // namespace assay::cpu
