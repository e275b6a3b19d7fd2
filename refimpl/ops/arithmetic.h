// In which numbers a forward pass is computed. Each precision is a stated arithmetic: what is stored between
// operations, what is accumulated, where is rounded.
//
//   precision   activations and cache   products and sums              weights
//   f64         float64                 float64                        as stored, decoded to float32
//   f32         float32                 float64, rounded once          "
//   bf16        bfloat16 values         as PyTorch's eager CPU code:   decoded, then rounded to bfloat16
//                                       wide inside an op, every op's result rounded
//   fp8_block   bfloat16 values         where a weight is FP8 with scales: activations in FP8, one scale for
//                                       1 × 128 of them; float32 sums of 128 products, scaled, then added up
//                                       in float32 (DeepSeek-V3, inference/kernel.py); elsewhere as bf16
//   int8        bfloat16 values         where a weight is INT8 with scales: activations in INT8, one scale a
//                                       token; exact integer sums, scaled once; elsewhere as bf16
//   int16       float32                 as f32; kernels may multiply weights that are GGUF blocks of integers,
//                                       BF16 or F16 by activations in 16-bit integers, and say how far off
//                                       that may be (kernels/operands)
//   int8_block  float32                 as f32; likewise, of GGUF blocks of integers, in 8-bit integers
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/numeric/codec.h"

namespace assay {

enum class Real : std::uint8_t { f32, f64 };  // how activations lie in memory

enum class Precision : std::uint8_t { f64, f32, bf16, fp8_block, int8, int16, int8_block };
std::string_view name(Precision precision);  // "fp8-block"
std::optional<Precision> precision_from_text(std::string_view text);

struct Arithmetic {
  Precision precision = Precision::f32;
  Real storage() const { return precision == Precision::f64 ? Real::f64 : Real::f32; }
  // Values are bfloat16 numbers, though they lie in memory as float32.
  bool bfloat16() const { return precision != Precision::f64 && !float32(); }
  // Values are float32, and so is everything that a result's own rule does not say otherwise.
  bool float32() const {
    return precision == Precision::f32 || precision == Precision::int16 || precision == Precision::int8_block;
  }
  // What is stored of a result: rounded to the precision of activations.
  double round(double x) const {
    if (precision == Precision::f64) return x;
    return bfloat16() ? stage(x) : static_cast<float>(x);
  }
  // Between the stages of one op: only PyTorch's bfloat16 rounds there.
  double stage(double x) const {
    if (!bfloat16()) return x;
    return decode(kBF16, encode(kBF16, static_cast<float>(x), Overflow::special));
  }
};

}  // namespace assay
