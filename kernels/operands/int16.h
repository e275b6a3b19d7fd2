// Operands of linear layers as 16-bit integers: activations under a scale for each 32 inputs of a token, and
// weights that are integers under scales already (GGUF's blocks) or become such.
//
//   s = 2^(⌊log₂ max|x|⌋ - bits + 1)  over each 32 inputs, no less than 2^-126
//   q = round(x / s)                  to nearest even, below 2^bits in magnitude;   x ≈ q · s
//
//   weight                    its bits                              activations' bits
//   GGUF's blocks             8 at most, as they are stored         15
//   BF16, F16                 12, over each 32 inputs of an output  14
//
// so that 32 products, the sum under one pair of scales, are exact in 32 bits: 32 · 2^15 · 2^7 = 2^27, and
// 32 · (2^14 - 1) · (2^12 - 1) < 2^31. One bit more on either side would not fit.
//
// What is lost: of activations at most half a step, 2^-bits of the largest of the 32. Of a BF16 weight, which
// has 8 significant bits, nothing where it is at least 1/8 of the power of two below the largest of its 32
// (four binades, 12 - 8), and of smaller ones at most 2^-12 of that power; of F16 with its 11 bits nothing in
// the largest two binades. An engine that multiplies BF16 weights by activations rounded to BF16 loses up to
// 2^-9 of every activation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

inline constexpr std::size_t kInt16Group = 32;
inline constexpr int kInt16WeightBits = 12;  // of floating-point weights

// Rows of BF16 or F16 numbers that whole groups make up, their bytes at hand.
bool has_int16_floats(const WeightView& weight);
// That, or rows of blocks of integers (has_integer_rows), and an arithmetic that asks for it.
bool takes_int16(const WeightView& weight, const Arithmetic& arithmetic);
// Of the activations that such a weight is multiplied by.
int int16_input_bits(const WeightView& weight);

// NaN where a value is NaN or infinite, which makes NaN of everything computed from it.
float int16_scale(std::span<const float> group, int bits);
std::int16_t int16_code(float x, float scale, int bits);

// The numbers that the integers stand for, in place: of a row, whose groups begin with it.
void round_to_int16(std::span<float> row, int bits);

}  // namespace assay
