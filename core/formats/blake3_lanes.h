// BLAKE3 of many inputs at once, one a lane of a vector: for the file of each instruction set, which says how
// wide its vectors are and how they are transposed.
// Nothing of the standard library but memcpy: what is compiled here may run on processors of that set alone.
#pragma once

#include <cstring>

#include "core/formats/blake3_tables.h"

namespace assay::blake3 {
namespace {

// By whole bytes AVX2 has one instruction where GCC makes three; AVX-512 has one for any number.
template <int kBits, typename Vector>
[[gnu::always_inline]] inline void rotate(Vector& x) {
  if constexpr (sizeof(Vector) == 32 && kBits == 16) {
    using Halves = std::uint16_t __attribute__((vector_size(32)));
    x = Vector(
        __builtin_shufflevector(Halves(x), Halves(x), 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  } else if constexpr (sizeof(Vector) == 32 && kBits == 8) {
    using Bytes = std::uint8_t __attribute__((vector_size(32)));
    x = Vector(__builtin_shufflevector(Bytes(x), Bytes(x), 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15,
                                       12, 17, 18, 19, 16, 21, 22, 23, 20, 25, 26, 27, 24, 29, 30, 31, 28));
  } else {
    x = (x >> kBits) | (x << (32 - kBits));
  }
}

template <typename Vector>
[[gnu::always_inline]] inline void mix(Vector& a, Vector& b, Vector& c, Vector& d, const Vector& x,
                                       const Vector& y) {
  a += b + x;
  d ^= a;
  rotate<16>(d);
  c += d;
  b ^= c;
  rotate<12>(b);
  a += b + y;
  d ^= a;
  rotate<8>(d);
  c += d;
  b ^= c;
  rotate<7>(b);
}

// Where a quarter round of one group waits for a result, that of another goes on.
template <typename Vector, int kGroups>
[[gnu::always_inline]] inline void rounds(Vector (*v)[16], const Vector (*m)[16]) {
  constexpr std::uint8_t kQuarters[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
                                            {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    const std::uint8_t* const s = kSchedule[round];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint8_t* const q = kQuarters[i];
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g)
        mix(v[g][q[0]], v[g][q[1]], v[g][q[2]], v[g][q[3]], m[g][s[2 * i]], m[g][s[2 * i + 1]]);
    }
  }
}

// The words of a lane's input that differ from lane to lane.
template <typename Vector>
struct LaneWords {
  Vector counter_low, counter_high, bytes, first, last;
};

template <typename Vector, std::size_t kLanes>
[[gnu::always_inline]] inline LaneWords<Vector> words_of(const LaneInput* inputs) {
  std::uint32_t words[5][kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    words[0][lane] = static_cast<std::uint32_t>(inputs[lane].counter);
    words[1][lane] = static_cast<std::uint32_t>(inputs[lane].counter >> 32);
    words[2][lane] = inputs[lane].bytes;
    words[3][lane] = inputs[lane].first_flags;
    words[4][lane] = inputs[lane].last_flags;
  }
  LaneWords<Vector> vectors;
  static_assert(sizeof(vectors) == sizeof(words));
  std::memcpy(&vectors, words, sizeof(words));
  return vectors;
}

// The sixteen words that a block's rounds begin with.
template <typename Vector>
[[gnu::always_inline]] inline void begin_block(const Vector* chaining, const LaneWords<Vector>& words,
                                               std::uint32_t done, std::uint32_t flags, Vector* v) {
  const Vector left = words.bytes - done;  // wraps where the lane has ended: those are kept out afterwards
  const Vector is_last = Vector(left <= static_cast<std::uint32_t>(kBlockBytes));
  for (int i = 0; i < 8; ++i) v[i] = chaining[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = Vector{} + kInitial[i];
  v[12] = words.counter_low;
  v[13] = words.counter_high;
  v[14] = (left & is_last) | ((Vector{} + static_cast<std::uint32_t>(kBlockBytes)) & ~is_last);
  v[15] = (words.last & is_last) | flags;
  if (done == 0) v[15] |= words.first;
}

// A lane that has come to its end keeps what it is while longer ones go on.
template <typename Vector>
[[gnu::always_inline]] inline void end_block(const Vector* v, const LaneWords<Vector>& words,
                                             std::uint32_t done, Vector* chaining) {
  const Vector goes_on = done == 0 ? ~Vector{} : Vector((Vector{} + done) < words.bytes);
  for (int i = 0; i < 8; ++i) chaining[i] = (chaining[i] & ~goes_on) | ((v[i] ^ v[i + 8]) & goes_on);
}

// kGroups vectors of kLanes lanes each. `transpose(inputs, block, message)`: of that block of every lane of a group
// the sixteen words, a vector of each word.
template <typename Vector, std::size_t kLanes, int kGroups = 1, typename Transpose>
[[gnu::always_inline]] inline void hash_lanes(const std::uint32_t* key, std::uint32_t flags,
                                              const LaneInput* inputs, std::uint32_t (*out)[8],
                                              const Transpose& transpose) {
  LaneWords<Vector> words[kGroups];
  Vector chaining[kGroups][8];
  std::uint32_t longest = 0;
  for (std::size_t lane = 0; lane < kGroups * kLanes; ++lane)
    longest = inputs[lane].bytes > longest ? inputs[lane].bytes : longest;
  for (int g = 0; g < kGroups; ++g) {
    words[g] = words_of<Vector, kLanes>(inputs + g * kLanes);
    for (int i = 0; i < 8; ++i) chaining[g][i] = Vector{} + key[i];
  }
  for (std::uint32_t done = 0; done == 0 || done < longest; done += kBlockBytes) {
    Vector message[kGroups][16], v[kGroups][16];
    for (int g = 0; g < kGroups; ++g) {
      transpose(inputs + g * kLanes, done, message[g]);
      begin_block(chaining[g], words[g], done, flags, v[g]);
    }
    rounds<Vector, kGroups>(v, message);
    for (int g = 0; g < kGroups; ++g) end_block(v[g], words[g], done, chaining[g]);
  }
  for (int g = 0; g < kGroups; ++g) {
    std::uint32_t values[8][kLanes];
    std::memcpy(values, chaining[g], sizeof(values));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < 8; ++i) out[g * kLanes + lane][i] = values[i][lane];
    }
  }
}

}  // namespace
}  // namespace assay::blake3
