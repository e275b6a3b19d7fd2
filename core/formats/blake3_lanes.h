// BLAKE3 of many inputs at once, one a lane of a vector: for the file of each instruction set, which says how
// wide its vectors are and how they are transposed.
// Nothing of the standard library but memcpy: what is compiled here may run on processors of that set alone.
#pragma once

#include <cstring>

#include "core/formats/blake3_tables.h"

namespace assay::blake3 {
namespace {

template <int kBits, typename Vector>
[[gnu::always_inline]] inline void rotate(Vector& x) {
  x = (x >> kBits) | (x << (32 - kBits));
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

template <typename Vector>
[[gnu::always_inline]] inline void rounds(Vector* v, const Vector* m) {
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    const std::uint8_t* const s = kSchedule[round];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
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

// `transpose(inputs, block, message)`: of that block of every lane the sixteen words, a vector of each word.
// A lane that has come to its end keeps what it is while longer ones go on.
template <typename Vector, std::size_t kLanes, typename Transpose>
[[gnu::always_inline]] inline void hash_lanes(const std::uint32_t* key, std::uint32_t flags,
                                              const LaneInput* inputs, std::uint32_t (*out)[8],
                                              const Transpose& transpose) {
  const LaneWords<Vector> words = words_of<Vector, kLanes>(inputs);
  std::uint32_t longest = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    longest = inputs[lane].bytes > longest ? inputs[lane].bytes : longest;
  Vector chaining[8];
  for (int i = 0; i < 8; ++i) chaining[i] = Vector{} + key[i];
  for (std::uint32_t done = 0; done == 0 || done < longest; done += kBlockBytes) {
    Vector message[16], v[16];
    transpose(inputs, done, message);
    const Vector begun = Vector{} + done;
    const Vector left = words.bytes - begun;  // wraps where the lane has ended: those are kept out below
    const Vector is_last = Vector(left <= static_cast<std::uint32_t>(kBlockBytes));
    const Vector length =
        (left & is_last) | ((Vector{} + static_cast<std::uint32_t>(kBlockBytes)) & ~is_last);
    for (int i = 0; i < 8; ++i) v[i] = chaining[i];
    for (int i = 0; i < 4; ++i) v[8 + i] = Vector{} + kInitial[i];
    v[12] = words.counter_low;
    v[13] = words.counter_high;
    v[14] = length;
    v[15] = (words.last & is_last) | flags;
    if (done == 0) v[15] |= words.first;
    rounds(v, message);
    const Vector goes_on = done == 0 ? ~Vector{} : Vector(begun < words.bytes);
    for (int i = 0; i < 8; ++i) chaining[i] = (chaining[i] & ~goes_on) | ((v[i] ^ v[i + 8]) & goes_on);
  }
  std::uint32_t values[8][kLanes];
  std::memcpy(values, chaining, sizeof(values));
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 8; ++i) out[lane][i] = values[i][lane];
  }
}

}  // namespace
}  // namespace assay::blake3
