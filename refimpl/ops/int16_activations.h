// Activations of linear layers whose weights are blocks of small integers, as 16-bit integers:
//
//   s = 2^(⌊log₂ max|x|⌋ - 14)  over each 32 inputs of a token, no less than 2^-126
//   q = round(x / s)            to nearest even, at most 32,767 in magnitude;   x ≈ q · s
//
// so that products with codes, and their sums under one scale, are exact in 32 bits. What is lost is at most
// 2^-15 of the largest of the 32, and nothing of inputs that are integers below 2^15 or zero but for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "refimpl/ops/interface.h"

namespace assay {

inline constexpr std::size_t kInt16Group = 32;

// Rows of GGUF blocks of integers under scales that are float32, their bytes at hand.
bool has_integer_rows(const WeightView& weight);
// Such a weight, and an arithmetic that asks for it.
bool takes_int16(const WeightView& weight, const Arithmetic& arithmetic);

// NaN where a value is NaN or infinite, which makes NaN of everything computed from it.
float int16_scale(std::span<const float> group);
std::int16_t int16_code(float x, float scale);

// [tokens, inputs]: the numbers that the integers stand for.
Matrix rounded_to_int16(Ops& ops, const Matrix& x);

}  // namespace assay
