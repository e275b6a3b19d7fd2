// BF16 and F16 weights rounded to integers under a scale for each 32 (kernels/operands/int16.h), about
// as quickly as they are read. To be included inside the namespace of an instruction set, after
// float_elements.h.
//
// No integer is made of a weight. A float m = 1.5 · 2^23 · s has the scale s for its last place, and so has
// its sum with any |w| < 2^12 · s: (w + m) - m = round(w / s) · s, ties to even. Products with x and their
// sums over the 32 are those of the integers, times a power of two; so every bit is the same, as long as no
// number is below the least that float32 has in full, or above the largest.
//
// Scales are found for 16 groups together. Without their signs 16-bit weights are ordered as integers are, and
// a tree of maxima yields the largest of eight groups side by side, at about the price of two separate ones.

// Vectors of 128 bits at least, whose size is known when this is compiled.
#undef ASSAY_GROUPS_AT_ONCE  // of the instruction set before
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
#define ASSAY_GROUPS_AT_ONCE 0
#else
#define ASSAY_GROUPS_AT_ONCE 1
#endif

#if ASSAY_GROUPS_AT_ONCE
constexpr std::size_t kGroupsAtOnce = 16;
using Words = hn::CappedTag<std::int16_t, kInt16Group>;

// Of a group's 32 weights, those in a vector's worth.
HWY_INLINE hn::Vec<Words> largest_words(const std::byte* w) {
  const Words d;
  const auto magnitudes = [&](std::size_t i) HWY_ATTR {
    return hn::And(load_bytes(d, w + i * sizeof(std::int16_t)), hn::Set(d, std::int16_t{0x7FFF}));
  };
  auto most = magnitudes(0);
  for (std::size_t i = hn::Lanes(d); i < kInt16Group; i += hn::Lanes(d)) most = hn::Max(most, magnitudes(i));
  return most;
}

// a and b in turn: half of what each had left, in every 128 bits.
HWY_INLINE hn::Vec<Words> fold(hn::Vec<Words> a, hn::Vec<Words> b) {
  const Words d;
  return hn::Max(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<std::int16_t, 8>> fold_to_128_bits(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 8) {
    const hn::Half<D> half;
    return fold_to_128_bits(half, hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    static_cast<void>(d);
    return v;
  }
}

// The largest of each of eight groups, in their order: three folds leave them bit-reversed otherwise.
HWY_INLINE void largest_of_eight(const std::byte* w, std::int16_t* largest) {
  const auto at = [&](std::size_t group)
                      HWY_ATTR { return largest_words(w + group * kInt16Group * sizeof(std::int16_t)); };
  const auto even = fold(fold(at(0), at(4)), fold(at(2), at(6)));
  const auto odd = fold(fold(at(1), at(5)), fold(at(3), at(7)));
  const hn::CappedTag<std::int16_t, 8> d;
  hn::StoreU(fold_to_128_bits(Words(), fold(even, odd)), d, largest);
}

// m of each group; false where one's largest is neither zero nor within 2^-64 and 2^60.
template <class Element>
HWY_INLINE bool find_rounders(const std::byte* w, float* rounders) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  HWY_ALIGN std::int16_t largest[kGroupsAtOnce];
  for (std::size_t g = 0; g < kGroupsAtOnce; g += 8)
    largest_of_eight(w + g * kInt16Group * sizeof(std::int16_t), largest + g);
  const auto exponents = hn::Set(di, 0x7F800000);
  auto usual = hn::FirstN(d, hn::Lanes(d));
  for (std::size_t g = 0; g < kGroupsAtOnce; g += hn::Lanes(d)) {
    const V32 most = Element::load(reinterpret_cast<const std::byte*>(largest + g));
    const auto within = hn::And(hn::Ge(most, hn::Set(d, 0x1p-64F)), hn::Le(most, hn::Set(d, 0x1p60F)));
    usual = hn::And(usual, hn::Or(within, hn::Eq(most, hn::Zero(d))));
    const auto exponent = hn::And(hn::BitCast(di, most), exponents);
    // The scale is 2^(exponent - 11), the last place of numbers from 2^(exponent + 12) on.
    const auto above =
        hn::Add(hn::Max(exponent, hn::Set(di, kInt16WeightBits << 23)), hn::Set(di, kInt16WeightBits << 23));
    hn::StoreU(hn::BitCast(d, hn::Or(above, hn::Set(di, 0x400000))), d, rounders + g);
  }
  return hn::AllTrue(d, usual);
}

// Of kGroupsAtOnce groups, each summed up by itself.
template <class Element>
HWY_INLINE V32 add_rounded(const std::byte* w, const float* HWY_RESTRICT x, const float* rounders,
                           V32 total) {
  const F32 d;
  for (std::size_t g = 0; g < kGroupsAtOnce; ++g, w += kInt16Group * Element::kBytes, x += kInt16Group) {
    fetch_ahead(w, 64);
    const V32 m = hn::Set(d, rounders[g]);
    V32 sum = hn::Zero(d);
    for (std::size_t i = 0; i < kInt16Group; i += hn::Lanes(d)) {
      const V32 rounded = hn::Sub(hn::Add(Element::load(w + i * Element::kBytes), m), m);
      sum = hn::MulAdd(rounded, hn::LoadU(d, x + i), sum);
    }
    total = hn::Add(total, sum);
  }
  return total;
}
#endif
