// The functions and constants of SHA-256 (FIPS 180-4, sections 4.1.2, 4.2.2 and 6.2.2) over vectors: element
// i of every vector belongs to lane i, and each lane hashes a message of its own.
//
// Included only by the files sha256_<instruction set>.cpp, which are compiled with that set's flags. So
// nothing here may pull in inline functions of the standard library: the linker could pick the copy that this
// CPU cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#define ASSAY_INLINE inline __attribute__((always_inline))

namespace assay::sha256 {

using Compress = void(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks);
Compress compress_avx512_x16, compress_avx512_x8, compress_avx2_x8, compress_shani_x2, compress_shani_x4;

namespace {

alignas(64) constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// `V` supplies, for one instruction set:
//   Vec, kLanes, broadcast, add, rotate_right<n>, shift_right<n>, xor3, choose, majority,
//   load_message(data, words): word j of every lane's next block into words[j], big-endian decoded,
//   load_state / store_state: the eight chaining words to and from the lanes' own arrays.
template <class V>
ASSAY_INLINE typename V::Vec big_sigma0(typename V::Vec x) {
  return V::xor3(V::template rotate_right<2>(x), V::template rotate_right<13>(x),
                 V::template rotate_right<22>(x));
}
template <class V>
ASSAY_INLINE typename V::Vec big_sigma1(typename V::Vec x) {
  return V::xor3(V::template rotate_right<6>(x), V::template rotate_right<11>(x),
                 V::template rotate_right<25>(x));
}
template <class V>
ASSAY_INLINE typename V::Vec small_sigma0(typename V::Vec x) {
  return V::xor3(V::template rotate_right<7>(x), V::template rotate_right<18>(x),
                 V::template shift_right<3>(x));
}
template <class V>
ASSAY_INLINE typename V::Vec small_sigma1(typename V::Vec x) {
  return V::xor3(V::template rotate_right<17>(x), V::template rotate_right<19>(x),
                 V::template shift_right<10>(x));
}

// Round t; instead of moving the eight words one place, their names turn: a is s[-t], b is s[1-t], … (mod 8).
template <class V>
ASSAY_INLINE void round(typename V::Vec (&s)[8], unsigned t, typename V::Vec w, std::uint32_t k) {
  auto& d = s[(3 - t) & 7];
  auto& h = s[(7 - t) & 7];
  const auto a = s[(0 - t) & 7], b = s[(1 - t) & 7], c = s[(2 - t) & 7];
  const auto e = s[(4 - t) & 7], f = s[(5 - t) & 7], g = s[(6 - t) & 7];
  const auto t1 = V::add(V::add(V::add(h, V::add(w, V::broadcast(k))), V::choose(e, f, g)), big_sigma1<V>(e));
  d = V::add(d, t1);
  h = V::add(t1, V::add(big_sigma0<V>(a), V::majority(a, b, c)));
}

// W[t] = σ1(W[t-2]) + W[t-7] + σ0(W[t-15]) + W[t-16], kept as a ring of sixteen.
template <class V>
ASSAY_INLINE void expand(typename V::Vec (&w)[16], unsigned t) {
  w[t & 15] = V::add(V::add(w[t & 15], w[(t + 9) & 15]),
                     V::add(small_sigma0<V>(w[(t + 1) & 15]), small_sigma1<V>(w[(t + 14) & 15])));
}

template <class V>
ASSAY_INLINE void compress_lanes(std::uint32_t* const* state, const std::byte* const* data,
                                 std::size_t blocks) {
  typename V::Vec s[8], w[16];
  const std::byte* at[V::kLanes];
  for (int lane = 0; lane < V::kLanes; ++lane) at[lane] = data[lane];
  V::load_state(state, s);
  for (; blocks != 0; --blocks) {
    const typename V::Vec before[8] = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]};
    V::load_message(at, w);
    for (int lane = 0; lane < V::kLanes; ++lane) at[lane] += 64;
#pragma GCC unroll 16
    for (unsigned t = 0; t < 16; ++t) round<V>(s, t, w[t], kRound[t]);
#pragma GCC unroll 1
    for (const std::uint32_t* k = kRound + 16; k != kRound + 64; k += 16) {
#pragma GCC unroll 16
      for (unsigned t = 0; t < 16; ++t) {
        expand<V>(w, t);
        round<V>(s, t, w[t], k[t]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) s[i] = V::add(s[i], before[i]);
  }
  V::store_state(state, s);
}

}  // namespace
}  // namespace assay::sha256
