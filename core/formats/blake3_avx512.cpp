// BLAKE3, one input a lane of 512-bit vectors: twice as many lanes as AVX2 has, rotations that are one
// instruction, and registers enough.
#include "core/formats/blake3_lanes.h"

#if defined(__AVX512F__)

namespace assay::blake3 {
namespace {

using Vector16 = std::uint32_t __attribute__((vector_size(64)));

// The sixteen words of a block of each of sixteen inputs become sixteen vectors of one word each.
[[gnu::always_inline]] inline void transpose_sixteen(const LaneInput* inputs, std::size_t from,
                                                     Vector16* out) {
  Vector16 rows[16], pairs[16], fours[16];
  for (int i = 0; i < 16; ++i) std::memcpy(&rows[i], inputs[i].at + from, 64);
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,
                                       13, 29);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27,
                                           14, 30, 15, 31);
  }
  // fours[4 g + j]: in its quarter q, word 4 q + j of the inputs 4 g to 4 g + 3.
  for (int i = 0; i < 16; i += 4) {
    for (int half = 0; half < 2; ++half) {
      const Vector16 a = pairs[i + half], b = pairs[i + 2 + half];
      fours[i + 2 * half] =
          __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      fours[i + 2 * half + 1] =
          __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
  for (int j = 0; j < 4; ++j) {
    const Vector16 a = fours[j], b = fours[4 + j], c = fours[8 + j], d = fours[12 + j];
    const Vector16 ab_low =
        __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const Vector16 ab_high =
        __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const Vector16 cd_low =
        __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const Vector16 cd_high =
        __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const auto even = [](const Vector16& x, const Vector16& y) __attribute__((always_inline)) {
      return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    };
    const auto odd = [](const Vector16& x, const Vector16& y) __attribute__((always_inline)) {
      return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    };
    out[j] = even(ab_low, cd_low);
    out[4 + j] = odd(ab_low, cd_low);
    out[8 + j] = even(ab_high, cd_high);
    out[12 + j] = odd(ab_high, cd_high);
  }
}

}  // namespace

void hash_lanes_avx512(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                       std::uint32_t (*out)[8]) {
  hash_lanes<Vector16, 16>(key, flags, inputs, out,
                           [](const LaneInput* in, std::size_t block, Vector16* message) {
                             transpose_sixteen(in, block, message);
                           });
}

// Two groups fill the 32 registers with what is mixed; the messages are read from memory as they are added.
void hash_twice_avx512(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                       std::uint32_t (*out)[8]) {
  hash_lanes<Vector16, 16, 2>(key, flags, inputs, out,
                              [](const LaneInput* in, std::size_t block, Vector16* message) {
                                transpose_sixteen(in, block, message);
                              });
}

}  // namespace assay::blake3

#endif
