// Sums of products of a row's groups of 32 codes, out of vectors that have several for each, eight groups to a vector or, of
// the shortest, to two. To be included inside the namespace of an instruction set, after what row_dot_int8.cpp says of
// products of bytes.

HWY_INLINE V16 neighbours_added(V16 a, V16 b) {  // of each 16 bytes of a four sums, then of b's
#if HWY_TARGET == HWY_SSE4
  return V16{_mm_hadd_epi16(a.raw, b.raw)};
#else
  return V16{_mm256_hadd_epi16(a.raw, b.raw)};
#endif
}
HWY_INLINE V32 neighbours_added(V32 a, V32 b) {
#if HWY_TARGET == HWY_SSE4
  return V32{_mm_hadd_epi32(a.raw, b.raw)};
#else
  return V32{_mm256_hadd_epi32(a.raw, b.raw)};
#endif
}

// Eight numbers, a group's each.
constexpr std::size_t kVectorsOfEight = 8 / hn::MaxLanes(DF());
struct OfEight {
  VF each[kVectorsOfEight];
};
struct SumsOfEight {
  V32 each[kVectorsOfEight];
};
// Of the sums of four groups, and of four more: a vector's 16 bytes, in a long one both of them, hold a part of each.
HWY_INLINE SumsOfEight sums_of_eight(V32 first, V32 second) {
#if HWY_TARGET == HWY_SSE4
  return {{first, second}};
#else
  const D32 d;
  return {{hn::Add(hn::ConcatUpperLower(d, second, first), hn::ConcatLowerUpper(d, second, first))}};
#endif
}
HWY_INLINE void add_scaled_sums(const SumsOfEight& sums, const OfEight& scales, VF& total) {
  for (std::size_t i = 0; i < kVectorsOfEight; ++i)
    total = hn::MulAdd(hn::ConvertTo(DF(), sums.each[i]), scales.each[i], total);
}
// A group's factors by what there is of a token's groups: their scales, or the sums of their inputs.
HWY_INLINE OfEight times(const OfEight& factors, const float* of_groups) {
  OfEight products;
  for (std::size_t i = 0; i < kVectorsOfEight; ++i)
    products.each[i] = hn::Mul(factors.each[i], hn::LoadU(DF(), of_groups + i * hn::Lanes(DF())));
  return products;
}
HWY_INLINE void add_minima(const OfEight& minima, const float* sums_of_32, VF& total) {
  for (std::size_t i = 0; i < kVectorsOfEight; ++i)
    total = hn::MulAdd(minima.each[i], hn::LoadU(DF(), sums_of_32 + i * hn::Lanes(DF())), total);
}
