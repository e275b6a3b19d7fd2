// Products of bfloat16 pairs and of bytes that this CPU's own instructions make at most, from registers: what panels of
// weights are a share of.
#pragma once

#include <cstddef>

namespace assay {

// Makes `steps` steps on this thread; returns the products, 0 where the CPU has no such instruction.
double multiply_bf16_pairs(std::size_t steps);  // AVX512_BF16
double multiply_bytes(std::size_t steps);       // AVX512_VNNI

}  // namespace assay
