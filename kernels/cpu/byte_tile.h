// The inner loop of gemm_i16.cpp for codes of 4 to 6 bits, with VNNI of 8, by codes of 8: one instruction multiplies four
// neighbours of k, bytes without a sign by bytes with one, and adds them up to two sums of 16 bits. Those
// have room for as many quads as kQuads says, 2 · largest code · 127 each. With VNNI it adds all four up in
// 32 bits, where a whole group has room. That codes were stored from 0 up, not centred, is made up for
// exactly: Σ (c - centre) q = Σ c q - centre · Σ q, in integers, so that a result has the same bits as by
// 16-bit codes. To be included inside the namespace of an instruction set.

template <ByteForm Form, bool Minimum>
struct ByteCodesOf {
  static constexpr std::size_t kGroup = Form.group;
  static constexpr bool kMinimum = Minimum;
  static constexpr int kCentre = Form.centre;  // codes lie within [0, 2 · centre)
  static constexpr std::size_t kQuads =
      std::min<std::size_t>(ASSAY_VNNI ? kGroup : 32767 / (2 * (2 * kCentre - 1) * 127), kGroup / 4);
};

#if ASSAY_BYTE_PRODUCTS

using I16 = hn::Repartition<std::int16_t, I32>;
using VWords = hn::Vec<I16>;
struct ByteProducts {
  static HWY_INLINE VWords of(VI w, VI x) { return byte_products(w, x); }
  template <class V>
  static HWY_INLINE void add(V& sum, VI w, VI x) {
    accumulate_bytes(sum, w, x);
  }
};

// Adds `Quads` quads' products to the sums of a tile's tokens.
template <std::size_t Quads, std::size_t Rows>
HWY_INLINE void add_quads(const std::int32_t* panel, const std::int32_t* x, VI (&low)[Rows],
                          VI (&high)[Rows]) {
#if ASSAY_VNNI
  multiply_lanes<ByteProducts, false, Quads>(panel, x, low, high);
#else
  VWords a[Rows], b[Rows];
  multiply_lanes<ByteProducts, true, Quads>(panel, x, a, b);
  const VWords ones = hn::Set(I16(), 1);
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = add_word_products(low[i], a[i], ones);
    high[i] = add_word_products(high[i], b[i], ones);
  }
#endif
}

template <std::size_t Rows, class Codes>
HWY_INLINE void byte_tile(const Part& p, float* HWY_RESTRICT all_sums) {
  const I32 di;
  const std::size_t lanes = hn::Lanes(di);
  const std::int32_t *panel = p.panel, *x = p.x;
  SumsOf<Rows> sums(all_sums);
  for (std::size_t g = 0; g < p.terms / Codes::kGroup; ++g) {
    VI low[Rows], high[Rows];
    for (std::size_t i = 0; i < Rows; ++i) low[i] = high[i] = hn::Set(di, p.centring[g * Rows + i]);
    for (std::size_t quad = 0; quad < Codes::kGroup / 4; quad += Codes::kQuads) {
      add_quads<Codes::kQuads>(panel, x, low, high);
      panel += Codes::kQuads * 2 * lanes;
      x += Codes::kQuads * Rows;
    }
    scale_group<Rows, Codes::kGroup, Codes::kMinimum>(p, g, low, high, sums);
  }
  sums.finish();
}

#endif
