// What the copy engine of sm_90 (TMA) is told of a matrix whose tiles it brings to shared memory: rows of bytes, of
// which a tile is 128 bytes of `tile_rows` rows, laid out as wgmma.cuh's Swizzle128. What lies outside of the
// matrix becomes zeros (CUDA Driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensors").
#pragma once

#include <cstdint>

namespace assay::cuda {

inline constexpr std::uint32_t kTileBytes = 128;  // of a row

// As the driver encodes it, opaque; the emulator's holds what emulated_tensor_map() wrote there.
struct alignas(128) TensorMap {
  std::uint64_t words[16] = {};
};

struct TileSource {
  const void* base = nullptr;             // aligned to 16 bytes
  std::uint64_t rows = 0, row_bytes = 0;  // both 2^32 at most
  std::uint64_t pitch = 0;                // bytes from row to row, a multiple of 16
  std::uint32_t tile_rows = 0;            // 256 at most
};
// What of these limits `source` breaks; null: nothing.
const char* unmappable(const TileSource& source);

// Both throw Error::internal for what is unmappable(); the driver's Error::io where it has no such function or
// refuses.
TensorMap driver_tensor_map(const TileSource& source);
TensorMap emulated_tensor_map(const TileSource& source);
TileSource source_of(const TensorMap& emulated);

}  // namespace assay::cuda
