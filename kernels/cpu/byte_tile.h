// The inner loop of gemm_i16.cpp for codes of 4 to 6 bits by codes of 8: one instruction multiplies four
// neighbours of k, bytes without a sign by bytes with one, and adds them up to two sums of 16 bits. Those
// have room for as many quads as kQuads says, 2 · largest code · 127 each. That codes were stored from 0 up,
// not centred, is made up for exactly: Σ (c - centre) q = Σ c q - centre · Σ q, in integers, so that a result
// has the same bits as by 16-bit codes. To be included inside the namespace of an instruction set.

#undef ASSAY_BYTE_TILES
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
#define ASSAY_BYTE_TILES 1
#else
#define ASSAY_BYTE_TILES 0
#endif

template <int Bits, bool Minimum>
struct ByteCodesOf {
  static constexpr std::size_t kGroup = Bits == 6 ? 16 : 32;
  static constexpr bool kMinimum = Minimum;
  static constexpr int kCentre = 1 << (Bits - 1);
  static constexpr std::size_t kQuads =
      std::min<std::size_t>(32767 / (2 * (2 * kCentre - 1) * 127), kGroup / 4);
};

#if ASSAY_BYTE_TILES

// Of each lane's bytes, a0 b0 + a1 b1 and a2 b2 + a3 b3; a without a sign.
HWY_INLINE VI byte_products(VI a, VI b) {
#if HWY_TARGET == HWY_AVX3
  return VI{_mm512_maddubs_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return VI{_mm256_maddubs_epi16(a.raw, b.raw)};
#else
  return VI{_mm_maddubs_epi16(a.raw, b.raw)};
#endif
}

HWY_INLINE VI add_halves(VI a, VI b) {
  const hn::Repartition<std::int16_t, I32> d;
  return hn::BitCast(I32(), hn::Add(hn::BitCast(d, a), hn::BitCast(d, b)));
}

// Adds kQuads quads' products to the sums of a tile's tokens.
template <std::size_t Rows, std::size_t kQuads>
HWY_INLINE void add_quads(const std::int32_t* panel, const std::int32_t* x, VI (&low)[Rows],
                          VI (&high)[Rows]) {
  const I32 di;
  const std::size_t lanes = hn::Lanes(di);
  VI a[Rows], b[Rows];
  for (std::size_t i = 0; i < Rows; ++i) a[i] = b[i] = hn::Zero(di);
  for (std::size_t k = 0; k < kQuads; ++k, panel += 2 * lanes, x += Rows) {
    const VI w_low = hn::LoadU(di, panel), w_high = hn::LoadU(di, panel + lanes);
    for (std::size_t i = 0; i < Rows; ++i) {
      const VI value = hn::Set(di, x[i]);
      a[i] = add_halves(a[i], byte_products(w_low, value));
      finish_now(a[i]);
      b[i] = add_halves(b[i], byte_products(w_high, value));
      finish_now(b[i]);
    }
  }
  const VI ones = hn::Set(di, 0x00010001);
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = hn::Add(low[i], pair_products(a[i], ones));
    high[i] = hn::Add(high[i], pair_products(b[i], ones));
  }
}

template <std::size_t Rows, class Codes>
HWY_INLINE void byte_tile(const Part& p, float* HWY_RESTRICT sums) {
  const I32 di;
  const std::size_t lanes = hn::Lanes(di);
  const std::int32_t *panel = p.panel, *x = p.x;
  for (std::size_t g = 0; g < p.terms / Codes::kGroup; ++g) {
    VI low[Rows], high[Rows];
    for (std::size_t i = 0; i < Rows; ++i) {
      const std::int32_t* of_16 = p.code_sums + g * (Codes::kGroup / 16) * Rows + i;
      low[i] = high[i] =
          hn::Set(di, -Codes::kCentre * (Codes::kGroup == 16 ? of_16[0] : of_16[0] + of_16[Rows]));
    }
    for (std::size_t quad = 0; quad < Codes::kGroup / 4; quad += Codes::kQuads) {
      add_quads<Rows, Codes::kQuads>(panel, x, low, high);
      panel += Codes::kQuads * 2 * lanes;
      x += Codes::kQuads * Rows;
    }
    scale_group<Rows, Codes::kGroup, Codes::kMinimum>(p, g, low, high, sums);
  }
}

#endif
