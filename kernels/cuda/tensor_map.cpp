#include "kernels/cuda/tensor_map.h"

#include <bit>
#include <limits>
#include <string>

#include "core/system/error.h"

namespace assay::cuda {

const char* unmappable(const TileSource& source) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32, kMostPitch = std::uint64_t{1} << 40;
  if (std::bit_cast<std::uintptr_t>(source.base) % 16 != 0) return "it does not begin on 16 bytes";
  if (source.pitch % 16 != 0 || source.pitch >= kMostPitch)
    return "its rows do not begin on 16 bytes, or lie too far apart";
  if (source.rows == 0 || source.row_bytes == 0) return "it is empty";
  if (source.rows > kMost || source.row_bytes > kMost) return "it has more than 2^32 rows or bytes a row";
  if (source.tile_rows == 0 || source.tile_rows > 256) return "a tile has 1 to 256 rows";
  return nullptr;
}

TensorMap emulated_tensor_map(const TileSource& source) {
  if (const char* why = unmappable(source)) throw Error::internal(std::string("a tensor map: ") + why);
  TensorMap map;
  map.words[0] = std::bit_cast<std::uintptr_t>(source.base);
  map.words[1] = source.rows;
  map.words[2] = source.row_bytes;
  map.words[3] = source.pitch;
  map.words[4] = source.tile_rows;
  return map;
}

TileSource source_of(const TensorMap& emulated) {
  return {.base = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(emulated.words[0])),
          .rows = emulated.words[1],
          .row_bytes = emulated.words[2],
          .pitch = emulated.words[3],
          .tile_rows = static_cast<std::uint32_t>(emulated.words[4])};
}

}  // namespace assay::cuda
