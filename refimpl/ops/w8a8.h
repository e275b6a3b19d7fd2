// Linear layers of which weights and activations both have 8 bits.
//
//   fp8_block  q, s = quantize(x, 1 × 128);  y = Σ_blocks (Σ₁₂₈ q · w) · s_x · s_w    all sums in float32
//   int8       q, s = quantize(x, row);      y = (Σ q · w) · s_x · s_w                exact integer sum
//
// Sources: DeepSeek-V3 inference/kernel.py (act_quant, fp8_gemm); vLLM's and SGLang's W8A8 INT8 layers.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

// The weight is stored so, and the arithmetic asks for it.
bool is_w8a8(const WeightView& weight, const Arithmetic& arithmetic);
Matrix w8a8_linear(Ops& ops, const Matrix& x, const WeightView& weight, const WeightView& bias);

}  // namespace assay
