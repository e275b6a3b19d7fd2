// What the tiled products share: which tile of y a block computes, how tiles of x and W come to lie in shared
// memory, how a sum is stored.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/gemm_args.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// A block's tile: rows [row, row + rows) of x, all of one group; outputs from `output` on.
struct GemmTile {
  GemmWeight weight;
  std::int32_t row = 0, rows = 0, output = 0, group = 0;
};

// Tiles are taken in bands of so many tiles of rows, and within a band output by output: blocks that run at
// the same time share both x, which stays in the L2 cache, and W, which comes from memory once a band.
inline constexpr unsigned kBand = 16;

ASSAY_DEVICE GemmTile find_tile(const GemmArgs& args, unsigned block, int tile_rows, int tile_outputs) {
  const auto row_tiles = static_cast<unsigned>(args.row_tiles);
  const auto output_tiles = static_cast<unsigned>((args.outputs + tile_outputs - 1) / tile_outputs);
  const unsigned band = block / (kBand * output_tiles);
  const unsigned in_band = block % (kBand * output_tiles);
  const unsigned left = row_tiles - band * kBand;
  const unsigned height = left < kBand ? left : kBand;
  const auto row_tile = static_cast<std::int32_t>(band * kBand + in_band % height);

  GemmTile tile;
  tile.output = static_cast<std::int32_t>(in_band / height) * tile_outputs;
  std::int32_t group = 0, first = 0, end = args.rows, first_tile = 0;
  if (args.group_tiles != nullptr) {
    // The last group whose tiles begin at or before row_tile; empty groups have none.
    std::int32_t above = args.groups;
    while (above - group > 1) {
      const std::int32_t middle = (group + above) / 2;
      (args.group_tiles[middle] <= row_tile ? group : above) = middle;
    }
    first = args.group_rows[group];
    end = args.group_rows[group + 1];
    first_tile = args.group_tiles[group];
  }
  tile.group = group;
  tile.weight = args.weights[group];
  tile.row = first + (row_tile - first_tile) * tile_rows;
  tile.rows = end - tile.row < tile_rows ? end - tile.row : tile_rows;
  return tile;
}

// A tile of rows in shared memory: kBytes of each, in chunks of 16 bytes of which chunk c of row r lies at
// Place::chunk(r, c), so that the threads that read together meet different banks.
template <int kBytes, class Place>
struct SharedRows {
  static constexpr int kRowBytes = kBytes, kChunks = kBytes / 16;
  ASSAY_DEVICE static int offset(int row, int chunk) { return row * kBytes + Place::chunk(row, chunk) * 16; }
};

// Copies bytes [begin, begin + Layout::kRowBytes) of kRows rows, `valid_rows` of which there are, each
// `row_bytes` long; the rest becomes zero.
template <int kRows, int kThreads, class Layout>
ASSAY_DEVICE void copy_rows(unsigned char* shared, const unsigned char* source, std::int64_t pitch,
                            int valid_rows, std::int64_t row_bytes, std::int64_t begin) {
  constexpr int kCopies = kRows * Layout::kChunks;
  static_assert(kCopies % kThreads == 0, "every thread copies as much as any other");
  ASSAY_UNROLL
  for (int i = 0; i < kCopies / kThreads; ++i) {
    const int at = i * kThreads + static_cast<int>(thread_id());
    const int row = at / Layout::kChunks, chunk = at % Layout::kChunks;
    const std::int64_t column = begin + chunk * 16;
    const bool there = row < valid_rows && column < row_bytes;
    cp_async16(shared + Layout::offset(row, chunk), there ? source + row * pitch + column : source, there);
  }
}

ASSAY_DEVICE std::int64_t scale_row(const GemmArgs& args, std::int32_t output) {
  return static_cast<std::int64_t>((args.first_row + output) / args.block_rows) * args.scale_columns;
}
ASSAY_DEVICE std::int32_t scale_column(const GemmArgs& args, std::int32_t input) {
  return args.scale_columns == 1 ? 0 : input / args.block_columns;
}

ASSAY_DEVICE float finished(Finish finish, float sum, float bias) {
  if (finish == Finish::float32) return sum + bias;
  if (finish == Finish::bfloat16) return round_to_bf16(sum + bias);
  return round_to_bf16(round_to_bf16(sum) + bias);
}

ASSAY_DEVICE void store_sum(const GemmArgs& args, const GemmTile& tile, int row, int output, float sum) {
  if (row >= tile.rows || output >= args.outputs) return;
  const float bias = tile.weight.bias == nullptr ? 0.0f : tile.weight.bias[output];
  args.y[(tile.row + row) * args.y_pitch + output] = finished(args.finish, sum, bias);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
