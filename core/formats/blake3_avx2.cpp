// BLAKE3, one input a lane of 256-bit vectors.
#include "core/formats/blake3_lanes.h"

#if defined(__AVX2__)

namespace assay::blake3 {
namespace {

using Vector8 = std::uint32_t __attribute__((vector_size(32)));

// Eight words of each of eight inputs become eight vectors of one word each.
[[gnu::always_inline]] inline void transpose_eight(const LaneInput* inputs, std::size_t from, Vector8* out) {
  Vector8 rows[8], pairs[8], fours[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&rows[i], inputs[i].at + from, 32);
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    fours[i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    fours[i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    fours[i + 2] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    fours[i + 3] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    out[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    out[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace

void hash_lanes_avx2(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                     std::uint32_t (*out)[8]) {
  hash_lanes<Vector8, 8>(key, flags, inputs, out,
                         [](const LaneInput* in, std::size_t block, Vector8* message) {
                           transpose_eight(in, block, message);
                           transpose_eight(in, block + kBlockBytes / 2, message + 8);
                         });
}

}  // namespace assay::blake3

#endif
