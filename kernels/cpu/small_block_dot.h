// One row of blocks of 32 codes under one scale by the inputs of a few tokens, of 8 bits: eight blocks at a time, whose sums
// end in a vector, a lane each. To be included inside the namespace of an instruction set, after what row_dot_int8.cpp says
// of products of bytes.

// 16 bytes' nibbles as 32 codes, or, where vectors are half as long, those from code i on.
HWY_INLINE VBytes nibbles_at(const std::uint8_t* qs, std::size_t i) {
#if HWY_TARGET == HWY_SSE4
  const VBytes v = hn::LoadU(Bytes(), qs);
  return i == 0 ? low_nibbles(v) : shift_right<4>(v, 15);
#else
  static_cast<void>(i);
  const hn::Half<Bytes> half;
  const hn::RepartitionToWide<decltype(half)> wide;
  const auto v = hn::LoadU(half, qs);
  const auto high = hn::BitCast(half, hn::ShiftRight<4>(hn::BitCast(wide, v)));
  return low_nibbles(hn::Combine(Bytes(), high, v));
#endif
}
// 16 where bit i of the word is set, for codes i …: bit i is in byte i / 8.
HWY_INLINE VBytes fifths_at(std::uint32_t word, std::size_t i) {
  alignas(32) static constexpr std::uint8_t kByte[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                         2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const Bytes d;
  const auto bits = hn::BitCast(d, hn::Set(hn::Repartition<std::uint64_t, Bytes>(), 0x8040201008040201u));
  const auto words = hn::BitCast(d, hn::Set(hn::Repartition<std::uint32_t, Bytes>(), word));
  const auto set = hn::TestBit(hn::TableLookupBytes(words, hn::Load(d, kByte + i)), bits);
  return hn::IfThenElseZero(set, hn::Set(d, std::uint8_t{16}));
}

// What a type of 32 codes says of a block: its codes without their sign, and value = scale·code + minimum,
// the minimum a number of its own or a multiple of the scale.
template <class Stored>
struct Small;
template <>
struct Small<gguf_blocks::Q4_0> {
  static constexpr float kScales = -8;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q4_0& b, std::size_t i) { return nibbles_at(b.qs, i); }
};
template <>
struct Small<gguf_blocks::Q4_1> {
  static constexpr float kScales = 0;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q4_1& b, std::size_t i) { return nibbles_at(b.qs, i); }
};
template <>
struct Small<gguf_blocks::Q5_0> {
  static constexpr float kScales = -16;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q5_0& b, std::size_t i) {
    return hn::Or(nibbles_at(b.qs, i), fifths_at(b.qh.get(), i));
  }
};
template <>
struct Small<gguf_blocks::Q5_1> {
  static constexpr float kScales = 0;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q5_1& b, std::size_t i) {
    return hn::Or(nibbles_at(b.qs, i), fifths_at(b.qh.get(), i));
  }
};
template <>
struct Small<gguf_blocks::Q8_0> {  // codes have a sign, which goes to the inputs
  static constexpr float kScales = 0;
};
template <class Stored>
constexpr bool kOwnMinimum =
    std::is_same_v<Stored, gguf_blocks::Q4_1> || std::is_same_v<Stored, gguf_blocks::Q5_1>;
template <class Stored>
constexpr bool kHasMinimum = kOwnMinimum<Stored> || Small<Stored>::kScales != 0;

// Of block b.
template <class Stored, std::size_t Tokens>
HWY_INLINE void small_block_sums(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                                 V32 (&sums)[Tokens]) {
  for (V32& sum : sums) sum = hn::Zero(D32());
  for (std::size_t i = 0; i < 32; i += kBytes) {
    if constexpr (std::is_same_v<Stored, gguf_blocks::Q8_0>) {
      const VSigned w = hn::LoadU(SByte(), block.qs + i);
      const VBytes codes = hn::BitCast(Bytes(), hn::Abs(w));  // of -128 the bits of 128
      for (std::size_t t = 0; t < Tokens; ++t)
        sums[t] = add_byte_products(sums[t], codes, with_sign_of(inputs_at(x[t].groups[b], i), w));
    } else {
      const VBytes codes = Small<Stored>::codes(block, i);
      for (std::size_t t = 0; t < Tokens; ++t)
        sums[t] = add_byte_products(sums[t], codes, inputs_at(x[t].groups[b], i));
    }
  }
}

// Numbers in half precision out of as many blocks as a vector has lanes.
template <class Stored>
HWY_INLINE VF halves_of(const Stored* block, gguf_blocks::Half Stored::*which) {
  const hn::Rebind<std::uint16_t, DF> d;
  const auto bits = [&](int i) HWY_ATTR {
    return static_cast<short>(static_cast<gguf_blocks::U16>(block[i].*which).get());
  };
#if HWY_TARGET == HWY_SSE4
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), 0, 0, 0, 0);
#else
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), bits(4), bits(5), bits(6), bits(7));
#endif
  return from_half(DF(), hn::Vec<decltype(d)>{raw});
}

// A token's sums of four blocks, added up within each 16 bytes.
HWY_INLINE V32 of_four_blocks(V32 a, V32 b, V32 c, V32 d) {
  return neighbours_added(neighbours_added(a, b), neighbours_added(c, d));
}
template <class Stored, std::size_t Tokens>
HWY_INLINE void four_block_sums(const Stored* block, const Inputs<Tokens>& x, std::size_t b,
                                V32 (&sums)[Tokens]) {
  V32 each[4][Tokens];
  for (std::size_t i = 0; i < 4; ++i) small_block_sums(block[i], x, b + i, each[i]);
  for (std::size_t t = 0; t < Tokens; ++t)
    sums[t] = of_four_blocks(each[0][t], each[1][t], each[2][t], each[3][t]);
}

// Blocks b to b + 7, the first of which is at `block`.
template <class Stored, std::size_t Tokens>
HWY_INLINE void add_eight_blocks(const Stored* block, const Inputs<Tokens>& x, std::size_t b,
                                 VF (&totals)[Tokens]) {
  OfEight scales, minima;
  for (std::size_t i = 0; i < kVectorsOfEight; ++i) {
    const Stored* const of_vector = block + i * hn::Lanes(DF());
    scales.each[i] = halves_of(of_vector, &Stored::d);
    if constexpr (kOwnMinimum<Stored>)
      minima.each[i] = halves_of(of_vector, &Stored::m);
    else
      minima.each[i] = hn::Mul(scales.each[i], hn::Set(DF(), Small<Stored>::kScales));
  }
  V32 first[Tokens], second[Tokens];
  four_block_sums(block, x, b, first);
  four_block_sums(block + 4, x, b + 4, second);
  for (std::size_t t = 0; t < Tokens; ++t) {
    add_scaled_sums(sums_of_eight(first[t], second[t]), times(scales, x[t].scales + b), totals[t]);
    if constexpr (kHasMinimum<Stored>) add_minima(minima, x[t].sums_of_32 + b, totals[t]);
  }
}

// What does not fill eight.
template <class Stored, std::size_t Tokens>
HWY_INLINE void add_block(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                          float (&rest)[Tokens]) {
  const float scale = widen(block.d);
  float minimum = Small<Stored>::kScales * scale;
  if constexpr (kOwnMinimum<Stored>) minimum = widen(block.m);
  V32 sums[Tokens];
  small_block_sums(block, x, b, sums);
  for (std::size_t t = 0; t < Tokens; ++t) {
    const auto sum = static_cast<float>(hn::GetLane(hn::SumOfLanes(D32(), sums[t])));
    rest[t] += minimum * x[t].sums_of_32[b] + scale * x[t].scales[b] * sum;
  }
}

template <class Block, std::size_t Tokens>
HWY_INLINE void dot_small_blocks(const std::byte* w, std::size_t blocks, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const typename Block::Stored*>(w);
  VF totals[Tokens];
  float rest[Tokens] = {};
  for (VF& total : totals) total = hn::Zero(DF());
  std::size_t b = 0;
  for (; b + 8 <= blocks; b += 8) {
    fetch_ahead(block + b, 8 * sizeof block[b]);
    add_eight_blocks(block + b, x, b, totals);
  }
  for (; b < blocks; ++b) add_block(block[b], x, b, rest);
  for (std::size_t t = 0; t < Tokens; ++t) y[t] = hn::GetLane(hn::SumOfLanes(DF(), totals[t])) + rest[t];
}
