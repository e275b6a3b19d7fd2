// Products of small integers, added up in lanes of 32 bits: of two words of 16 bits, or of four bytes, those
// on the left without a sign. To be included inside the namespace of an instruction set.
//
// With VNNI either is one instruction. Otherwise the words' products take a multiplication (pmaddwd) and an
// addition, the bytes' one more multiplication (pmaddubsw, to sums of two in 16 bits), and the results are
// the same to the bit: integers are exact, all sums in 32 bits wrap around alike, and only those in 16 bits
// saturate, which they do not where 2 · largest · largest < 2^15.

#undef ASSAY_BYTE_PRODUCTS
#define ASSAY_BYTE_PRODUCTS (HWY_TARGET <= HWY_SSE4)  // targets are numbered from the best; x86's come first
#undef ASSAY_VNNI
#define ASSAY_VNNI (HWY_TARGET == HWY_AVX3_DL)

#if ASSAY_BYTE_PRODUCTS
HWY_INLINE __m128i multiply_words(__m128i a, __m128i b) {
  return _mm_madd_epi16(a, b);
}
HWY_INLINE __m128i multiply_bytes(__m128i a, __m128i b) {
  return _mm_maddubs_epi16(a, b);
}
#endif
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE __m256i multiply_words(__m256i a, __m256i b) {
  return _mm256_madd_epi16(a, b);
}
HWY_INLINE __m256i multiply_bytes(__m256i a, __m256i b) {
  return _mm256_maddubs_epi16(a, b);
}
#endif
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE __m512i multiply_words(__m512i a, __m512i b) {
  return _mm512_madd_epi16(a, b);
}
HWY_INLINE __m512i multiply_bytes(__m512i a, __m512i b) {
  return _mm512_maddubs_epi16(a, b);
}
#endif
#if ASSAY_VNNI
HWY_INLINE __m256i dot_words(__m256i sum, __m256i a, __m256i b) {
  return _mm256_dpwssd_epi32(sum, a, b);
}
HWY_INLINE __m256i dot_bytes(__m256i sum, __m256i a, __m256i b) {
  return _mm256_dpbusd_epi32(sum, a, b);
}
HWY_INLINE __m512i dot_words(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}
HWY_INLINE __m512i dot_bytes(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}
#endif

// sum + a0·b0 + a1·b1 of each lane's words.
template <class VSum, class V>
HWY_INLINE VSum add_word_products(VSum sum, V a, V b) {
#if ASSAY_VNNI
  return VSum{dot_words(sum.raw, a.raw, b.raw)};
#elif ASSAY_BYTE_PRODUCTS
  return hn::Add(sum, VSum{multiply_words(a.raw, b.raw)});
#else
  // Where the instruction adds odd and even products apart, `rest` takes the one of them.
  const hn::DFromV<VSum> d;
  VSum rest = hn::Zero(d);
  sum = hn::ReorderWidenMulAccumulate(d, a, b, sum, rest);
  return hn::Add(sum, rest);
#endif
}

#if ASSAY_BYTE_PRODUCTS
// codes0·x0 + codes1·x1 of each word's bytes.
template <class V, class VSigned>
HWY_INLINE auto byte_products(V codes, VSigned x) {
  using Words = hn::Repartition<std::int16_t, hn::DFromV<V>>;
  return hn::Vec<Words>{multiply_bytes(codes.raw, x.raw)};
}
// sum + codes0·x0 + … + codes3·x3 of each lane's bytes.
template <class VSum, class V, class VSigned>
HWY_INLINE VSum add_byte_products(VSum sum, V codes, VSigned x) {
#if ASSAY_VNNI
  return VSum{dot_bytes(sum.raw, codes.raw, x.raw)};
#else
  const auto words = byte_products(codes, x);
  return add_word_products(sum, words, hn::Set(hn::DFromV<decltype(words)>(), 1));
#endif
}
#endif

#if ASSAY_BYTE_PRODUCTS
// The same two products into a sum that stays in its register. Of a product and an addition apart GCC 12 makes three
// instructions, the third a move back, and loops of a tile are as long as their instructions are many.
#if !ASSAY_VNNI && HWY_TARGET <= HWY_AVX2
#if HWY_TARGET <= HWY_AVX3
#define ASSAY_VECTOR "v"  // any of 32 registers
#else
#define ASSAY_VECTOR "x"
#endif
#define ASSAY_ADD_PRODUCTS(product, add, sum, a, b)                                       \
  decltype((a).raw) products;                                                             \
  asm volatile(product " %[right], %[left], %[each]\n\t" add " %[each], %[into], %[into]" \
               : [into] "+" ASSAY_VECTOR((sum).raw), [each] "=" ASSAY_VECTOR(products)    \
               : [left] ASSAY_VECTOR((a).raw), [right] ASSAY_VECTOR((b).raw))
template <class VSum, class V>
HWY_INLINE void accumulate_words(VSum& sum, V a, V b) {
  ASSAY_ADD_PRODUCTS("vpmaddwd", "vpaddd", sum, a, b);
}
// Into sums of words: codes0·x0 + codes1·x1 of each word's bytes.
template <class VWords, class V>
HWY_INLINE void accumulate_bytes(VWords& sums, V codes, V x) {
  ASSAY_ADD_PRODUCTS("vpmaddubsw", "vpaddw", sums, codes, x);
}
#undef ASSAY_ADD_PRODUCTS
#undef ASSAY_VECTOR
#else
template <class VSum, class V>
HWY_INLINE void accumulate_words(VSum& sum, V a, V b) {
  sum = add_word_products(sum, a, b);
  hold(sum);
}
template <class VSum, class V>
HWY_INLINE void accumulate_bytes(VSum& sum, V codes, V x) {
#if ASSAY_VNNI
  sum = add_byte_products(sum, codes, x);
#else
  sum = hn::Add(sum, byte_products(codes, x));
#endif
  hold(sum);
}
#endif
#endif
