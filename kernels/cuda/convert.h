// A stored matrix as numbers of another type, on the device: what a library multiplies, and rows of an
// embedding table.
#pragma once

#include <cstdint>
#include <optional>

#include "core/numeric/element_type.h"
#include "kernels/cuda/launch_plan.h"

namespace assay {
struct WeightView;
}

namespace assay::cuda {

enum class Number : std::uint8_t { f32, bf16, f16, e4m3, e5m2, i8 };
std::optional<Number> number_of(ElementType type);
constexpr std::size_t bytes_of(Number number) {
  return number == Number::f32 ? 4 : number == Number::bf16 || number == Number::f16 ? 2 : 1;
}

// to[r][c] = from[row of r][c] · scale, rounded once to `to`'s type; zeros in the padding.
struct ConvertArguments {
  const void* from = nullptr;
  Number from_type = Number::f32;
  std::uint64_t from_stride = 0;           // elements
  const std::uint32_t* rows_of = nullptr;  // null: row r is row r
  const float* scales = nullptr;           // null: none
  std::uint32_t scale_columns = 0, block_rows = 1, block_columns = 1, first_row = 0;
  void* to = nullptr;
  Number to_type = Number::f32;  // f32, bf16, or i8 from i8
  std::uint64_t to_stride = 0;
  std::uint32_t rows = 0, columns = 0, padded_rows = 0, padded_columns = 0;
  bool bfloat16 = false;  // to f32: numbers of bfloat16
};

class Staging;

// The scales of a scaled weight, on the device.
void set_scales(ConvertArguments& arguments, const WeightView& weight, Staging& staging);

// Whether its bytes are at hand, and how they become numbers is no more than a type and a scale a block.
bool is_convertible(const WeightView& weight);

}  // namespace assay::cuda
