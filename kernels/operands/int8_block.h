// Activations of linear layers whose weights are blocks of small integers, as 8-bit integers:
//
//   s = max|x| / 127     over each 32 inputs of a token, no less than 2^-126
//   q = round(x · (1/s)) to nearest even, at most 127 in magnitude;   x ≈ q · s
//
// as GGUF's own Q8_0 rounds, but for its scale in half precision: what llama.cpp multiplies blocks of 32 by. Blocks of 256 (Q4_K …)
// it multiplies by inputs of which each 256 have one scale (ggml's Q8_K); our kernels do not.
// What is lost is at most half a step, 2^-8 of the largest of the 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

inline constexpr std::size_t kInt8Group = 32, kInt8SuperGroup = 256;
inline constexpr int kInt8BlockBits = 7;  // of a code, beside its sign

// A weight that has_integer_rows, and an arithmetic that asks for it. Matrices absorbed into latent attention
// are no exception where a file keeps them as they are multiplied: llama.cpp's way.
bool takes_int8_block(const WeightView& weight, const Arithmetic& arithmetic);

// NaN where a value is NaN or infinite, which makes NaN of everything computed from it.
float int8_block_scale(std::span<const float> group);
std::int8_t int8_block_code(float x, float scale);

// The numbers that the integers stand for, in place: of a row, whose groups begin with it.
void round_to_int8_block(std::span<float> row);
void round_to_int8_super_block(std::span<float> row);  // one scale for each 256

}  // namespace assay
