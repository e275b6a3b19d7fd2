// What the matrix kernels are told: y = x · Wᵀ for one weight, or for the rows of many experts in one launch.
//
//   x       [rows, inputs]      8-bit codes or bfloat16, of that one or three planes to be added up
//   W       [outputs, inputs]   codes as the checkpoint has them, one matrix a group
//   y       [rows, outputs]     float32
//
// Every row of x and W begins at a multiple of 16 bytes and is padded with zeros up to the next one: so 16
// bytes can be copied at once, and what lies behind `inputs` adds nothing.
#pragma once

#include <cstdint>

#include "kernels/cuda/tensor_map.h"

namespace assay::cuda {

struct GemmWeight {
  const unsigned char* codes = nullptr;
  const float* scales = nullptr;  // none: 1
  const float* bias = nullptr;    // none: 0
};

// How a sum becomes what is stored (refimpl/ops/linear.cpp and w8a8.cpp).
enum class Finish : std::uint8_t {
  float32,        // sum + bias
  bfloat16,       // round(sum + bias)
  bfloat16_twice  // round(round(sum) + bias)
};

struct GemmArgs {
  std::int32_t rows = 0, outputs = 0, inputs = 0;
  const unsigned char* x = nullptr;
  std::int64_t x_pitch = 0, x_plane = 0;  // bytes from row to row, and from plane to plane
  const float* x_scales = nullptr;        // [rows, x_scale_columns]: one for 128 columns, or for a row
  std::int32_t x_scale_columns = 1;

  const GemmWeight* weights = nullptr;  // one a group
  // Of kernels that the copy engine feeds: x's, in tiles of a block's rows, and behind it each group's W's, in tiles
  // of 128 outputs. Of a group without rows it is not looked at.
  const TensorMap* maps = nullptr;
  std::int64_t w_pitch = 0;
  // The scale of W's element (o, i) is number (first_row + o) / block_rows × scale_columns + i /
  // block_columns. Where scale_columns is not 1, blocks are whole slabs wide.
  std::int32_t block_rows = 1, block_columns = 1, scale_columns = 1, first_row = 0;

  // Rows [group_rows[g], group_rows[g + 1]) belong to group g, which has tiles [group_tiles[g],
  // group_tiles[g + 1]) of the `row_tiles` tiles of rows. Null: all rows belong to group 0.
  const std::int32_t* group_rows = nullptr;
  const std::int32_t* group_tiles = nullptr;
  std::int32_t groups = 1, row_tiles = 0;

  float* y = nullptr;
  std::int64_t y_pitch = 0;  // elements
  Finish finish = Finish::float32;
  // So many slabs of columns are summed on tensor cores before they are scaled and added in float32.
  std::int32_t slabs_together = 4;
  std::int32_t stages = 2;  // of the pipeline through shared memory: 2 to kMostStages
};

inline constexpr int kSlab = 32;  // columns
inline constexpr int kMostStages = 6;

}  // namespace assay::cuda
