// One row of super-blocks of 256 codes by the inputs of a few tokens, of 8 bits. To be included inside the namespace of an
// instruction set, after sums_of_eight.h.
//
// Groups g and g + 4 lie side by side in a vector, eight codes of each by turns, as Input256 (int8_input.h)
// has the inputs. What belongs to one group is so added up before it is scaled, in 16 bits while it fits, and
// all eight groups' sums end in one vector, in the order 0 4 1 5 2 6 3 7.

// The first eight of each 16 bytes of two vectors, a's and b's by turns; the last eight.
HWY_INLINE VBytes first_eights(VBytes a, VBytes b) {
  const hn::Repartition<std::uint64_t, Bytes> d;
  return hn::BitCast(Bytes(), hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
HWY_INLINE VBytes last_eights(VBytes a, VBytes b) {
  const hn::Repartition<std::uint64_t, Bytes> d;
  return hn::BitCast(Bytes(), hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}

// Fifth bits of Q5_K's codes of groups Group and Group + 4, at bit Group of each byte; none of Q4_K's.
struct NoFifths {
  HWY_INLINE NoFifths(const gguf_blocks::Q4_K&, std::size_t) {}
  template <std::size_t Group>
  HWY_INLINE VBytes in_first(VBytes codes) const {
    return codes;
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_last(VBytes codes) const {
    return codes;
  }
};
class Fifths {
 public:
  HWY_INLINE Fifths(const gguf_blocks::Q5_K& block, std::size_t i) {
    const VBytes high = hn::LoadU(Bytes(), block.qh + i), of_last_groups = shift_right<4>(high, 15);
    first_ = first_eights(high, of_last_groups);
    last_ = last_eights(high, of_last_groups);
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_first(VBytes codes) const {
    return hn::Or(codes, bit<Group>(first_));
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_last(VBytes codes) const {
    return hn::Or(codes, bit<Group>(last_));
  }

 private:
  template <std::size_t Group>
  static HWY_INLINE VBytes bit(VBytes v) {
    return shift_left<4 - Group>(hn::And(v, hn::Set(Bytes(), std::uint8_t{1 << Group})));
  }
  VBytes first_, last_;
};
template <class Stored>
using FifthsOf = std::conditional_t<std::is_same_v<Stored, gguf_blocks::Q5_K>, Fifths, NoFifths>;

HWY_INLINE VSigned inputs_of(const Input256& x, std::size_t which, std::size_t i) {
  return hn::LoadU(SByte(), x.codes[which] + i);
}

// Eight codes each of groups g and g + 4 by turns.
struct CodesOfTwo {
  VBytes codes[2];
};
// Sums of groups g, g + 4, g + 1 and g + 5: of each 16 bytes of two groups, by inputs i … in that order. In 16 bits
// four pairs' products have room, 4 · 2 · 31 · 127 < 2^15.
HWY_INLINE V32 sums_of_four(const CodesOfTwo& low, const CodesOfTwo& high, const Input256& x, std::size_t g,
                            std::size_t i) {
  const auto sum = [&](const CodesOfTwo& of, std::size_t group) HWY_ATTR {
    const VSigned first = inputs_of(x, 2 * group, i), last = inputs_of(x, 2 * group + 1, i);
#if ASSAY_VNNI
    return add_byte_products(add_byte_products(hn::Zero(D32()), of.codes[0], first), of.codes[1], last);
#else
    return hn::Add(byte_products(of.codes[0], first), byte_products(of.codes[1], last));
#endif
  };
  const auto sums = neighbours_added(sum(low, g), sum(high, g + 1));
#if ASSAY_VNNI
  return sums;
#else
  return add_word_products(hn::Zero(D32()), sums, hn::Set(D16(), 1));
#endif
}

// Groups 2·Part, 2·Part + 1 and those four on, of super-block b.
template <std::size_t Part, class Stored, std::size_t Tokens>
HWY_INLINE void nibble_sums(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                            V32 (&sums)[Tokens]) {
  for (V32& sum : sums) sum = hn::Zero(D32());
  for (std::size_t i = 0; i < 32; i += kBytes) {
    const VBytes v = hn::LoadU(Bytes(), block.qs + 32 * Part + i);
    const VBytes w = hn::LoadU(Bytes(), block.qs + 32 * Part + 64 + i);
    const VBytes first = first_eights(v, w), last = last_eights(v, w);
    const FifthsOf<Stored> fifths(block, i);
    constexpr std::size_t kLow = 2 * Part, kHigh = 2 * Part + 1;
    const CodesOfTwo low = {{fifths.template in_first<kLow>(low_nibbles(first)),
                             fifths.template in_last<kLow>(low_nibbles(last))}};
    const CodesOfTwo high = {{fifths.template in_first<kHigh>(shift_right<4>(first, 15)),
                              fifths.template in_last<kHigh>(shift_right<4>(last, 15))}};
    for (std::size_t t = 0; t < Tokens; ++t)
      sums[t] = hn::Add(sums[t], sums_of_four(low, high, x[t].super_blocks[b], kLow, i));
  }
}

// Q4_K and Q5_K: eight groups of 32 codes, each with a scale and a minimum of 6 bits.
template <class Stored, std::size_t Tokens>
HWY_INLINE void dot_nibble_blocks(const std::byte* w, std::size_t blocks, const Inputs<Tokens>& x, float* y) {
  const hn::Rebind<std::uint8_t, DF> db;
  const auto* block = reinterpret_cast<const Stored*>(w);
  VF totals[Tokens];
  for (VF& total : totals) total = hn::Zero(DF());
  for (std::size_t b = 0; b < blocks; ++b, ++block) {
    fetch_ahead(block, sizeof(Stored));
    SixBitScales bytes;
    unpack_six_bits<true>(block->scales, bytes);
    const auto numbers = [&](const std::uint8_t* of_eight, float factor) HWY_ATTR {
      OfEight made;
      for (std::size_t i = 0; i < kVectorsOfEight; ++i) {
        const auto whole = hn::PromoteTo(D32(), hn::LoadU(db, of_eight + i * hn::Lanes(DF())));
        made.each[i] = hn::Mul(hn::ConvertTo(DF(), whole), hn::Set(DF(), factor));
      }
      return made;
    };
    const OfEight scales = numbers(bytes.each, widen(block->d));
    const OfEight minima = numbers(bytes.each + 8, -widen(block->dmin));
    V32 first[Tokens], second[Tokens];
    nibble_sums<0>(*block, x, b, first);
    nibble_sums<1>(*block, x, b, second);
    for (std::size_t t = 0; t < Tokens; ++t) {
      const Input256& in = x[t].super_blocks[b];
      add_scaled_sums(sums_of_eight(first[t], second[t]), times(scales, in.scales), totals[t]);
      add_minima(minima, in.sums_of_32, totals[t]);
    }
  }
  for (std::size_t t = 0; t < Tokens; ++t) y[t] = hn::GetLane(hn::SumOfLanes(DF(), totals[t]));
}

// The 16 scales of a super-block of Q6_K, of which codes 16·j … have the j-th: of a group's, those of its
// first 16 codes are the even ones. They multiply sums of two pairs' products, 2 · 2 · 63 · 127 < 2^15, and
// eight of them by 128 add up to far less than 2^31.
class SixteenScales {
 public:
  HWY_INLINE explicit SixteenScales(const std::int8_t* scales) {
    alignas(16) static constexpr std::uint8_t kApart[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                            1, 3, 5, 7, 9, 11, 13, 15};
    alignas(16) static constexpr std::uint8_t kInPairs[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                              4, 5, 12, 13, 6, 7, 14, 15};
    const hn::FixedTag<std::uint8_t, 16> d;
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(scales));
    widened(hn::TableLookupBytes(bytes, hn::Load(d, kApart)), apart_);
    widened(hn::TableLookupBytes(bytes, hn::Load(d, kInPairs)), in_pairs_);
  }
  // For codes i … of groups Group and Group + 4, eight of each by turns.
  template <std::size_t Group>
  HWY_INLINE V16 of(std::size_t i) const {
    constexpr std::uint8_t kA = 2 * Group, kB = 2 * (Group + 4);
    alignas(16) static constexpr std::uint8_t kSpread[16] = {kA, kA + 1, kA, kA + 1, kA, kA + 1, kA, kA + 1,
                                                             kB, kB + 1, kB, kB + 1, kB, kB + 1, kB, kB + 1};
    const auto spread = hn::BitCast(D16(), hn::LoadDup128(hn::Repartition<std::uint8_t, D16>(), kSpread));
    return hn::TableLookupBytes(apart_[i / kBytes], spread);
  }
  // Σ of scale · Σ q over both 16 of a group: what codes that mean 32 less are short of, but for that 32.
  HWY_INLINE SumsOfEight of_sums(const Input256& x) const {
    SumsOfEight sums;
    for (std::size_t i = 0; i < kVectorsOfEight; ++i)
      sums.each[i] = add_word_products(hn::Zero(D32()), in_pairs_[i],
                                       hn::LoadU(D16(), x.sums_of_16 + i * hn::Lanes(D16())));
    return sums;
  }

 private:
  static constexpr std::size_t kVectors = 16 / hn::MaxLanes(D16());
  static HWY_INLINE void widened(hn::Vec<hn::FixedTag<std::uint8_t, 16>> bytes, V16 (&to)[kVectors]) {
    const hn::FixedTag<std::int8_t, 16> d;
#if HWY_TARGET == HWY_SSE4
    const hn::Half<decltype(d)> half;
    to[0] = hn::PromoteTo(D16(), hn::LowerHalf(half, hn::BitCast(d, bytes)));
    to[1] = hn::PromoteTo(D16(), hn::UpperHalf(half, hn::BitCast(d, bytes)));
#else
    to[0] = hn::PromoteTo(D16(), hn::BitCast(d, bytes));
#endif
  }
  V16 apart_[kVectors], in_pairs_[kVectors];
};

// Codes of 6 bits, 0 … 63: groups 0 … 3 and, a half of the block further, those four on. Group 0's upper
// bits are the lowest ones of qh, group 1's the next ones, ….
struct SixBitCodes {
  VBytes of[2][4];  // the first eights, the last ones; of each group
  HWY_INLINE SixBitCodes(const gguf_blocks::Q6_K& block, std::size_t i) {
    const auto at = [&](const std::uint8_t* bytes) HWY_ATTR { return hn::LoadU(Bytes(), bytes + i); };
    const VBytes a0 = at(block.ql), a1 = at(block.ql + 32), ah = at(block.qh);
    const VBytes b0 = at(block.ql + 64), b1 = at(block.ql + 96), bh = at(block.qh + 32);
    unpack(first_eights(a0, b0), first_eights(a1, b1), first_eights(ah, bh), of[0]);
    unpack(last_eights(a0, b0), last_eights(a1, b1), last_eights(ah, bh), of[1]);
  }

 private:
  static HWY_INLINE void unpack(VBytes l0, VBytes l1, VBytes h, VBytes (&codes)[4]) {
    const auto two_bits = [](VBytes v, std::uint8_t mask)
                              HWY_ATTR { return hn::And(v, hn::Set(Bytes(), mask)); };
    codes[0] = hn::Or(low_nibbles(l0), shift_left<4>(two_bits(h, 3)));
    codes[1] = hn::Or(low_nibbles(l1), shift_left<2>(two_bits(h, 12)));
    codes[2] = hn::Or(shift_right<4>(l0, 15), two_bits(h, 48));
    codes[3] = hn::Or(shift_right<4>(l1, 15), shift_right<2>(h, 48));
  }
};

// A token's sums of all groups.
struct SixBitSums {
  V32 of[4];
  HWY_INLINE void add(const SixBitCodes& codes, const SixteenScales& scales, const Input256& x,
                      std::size_t i) {
    add_group<0>(codes, scales, x, i);
    add_group<1>(codes, scales, x, i);
    add_group<2>(codes, scales, x, i);
    add_group<3>(codes, scales, x, i);
  }
  template <std::size_t Group>
  HWY_INLINE void add_group(const SixBitCodes& codes, const SixteenScales& scales, const Input256& x,
                            std::size_t i) {
    const V16 products = hn::Add(byte_products(codes.of[0][Group], inputs_of(x, 2 * Group, i)),
                                 byte_products(codes.of[1][Group], inputs_of(x, 2 * Group + 1, i)));
    of[Group] = add_word_products(of[Group], products, scales.template of<Group>(i));
  }
  HWY_INLINE SumsOfEight of_eight() const {
    return sums_of_eight(neighbours_added(of[0], of[1]), neighbours_added(of[2], of[3]));
  }
};

template <std::size_t Tokens>
HWY_INLINE void dot_q6_k(const std::byte* w, std::size_t blocks, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const gguf_blocks::Q6_K*>(w);
  VF totals[Tokens];
  for (VF& total : totals) total = hn::Zero(DF());
  for (std::size_t b = 0; b < blocks; ++b, ++block) {
    fetch_ahead(block, sizeof *block);
    const SixteenScales of_16(block->scales);
    SixBitSums sums[Tokens];
    for (std::size_t t = 0; t < Tokens; ++t) {
      for (V32& sum : sums[t].of) sum = hn::Zero(D32());
    }
    for (std::size_t i = 0; i < 32; i += kBytes) {
      const SixBitCodes codes(*block, i);
      for (std::size_t t = 0; t < Tokens; ++t) sums[t].add(codes, of_16, x[t].super_blocks[b], i);
    }
    OfEight scales;
    for (VF& scale : scales.each) scale = hn::Set(DF(), widen(block->d));
    for (std::size_t t = 0; t < Tokens; ++t) {
      const Input256& in = x[t].super_blocks[b];
      SumsOfEight eight = sums[t].of_eight();
      const SumsOfEight short_of = of_16.of_sums(in);
      for (std::size_t i = 0; i < kVectorsOfEight; ++i)
        eight.each[i] = hn::Sub(eight.each[i], hn::ShiftLeft<5>(short_of.each[i]));
      add_scaled_sums(eight, times(scales, in.scales), totals[t]);
    }
  }
  for (std::size_t t = 0; t < Tokens; ++t) y[t] = hn::GetLane(hn::SumOfLanes(DF(), totals[t]));
}
