// GGUF blocks as small integers with a scale and a minimum a group, the form dot products want:
//
//   value[i] = scale[i / group] · code[i] + minimum[i / group]
//   Σ value[i]·x[i] = Σ_groups scale · Σ code[i]·x[i] + minimum · Σ x[i]
//
// Codes are centred (0 … 15 become -8 … 7, the minimum moves by 8 scales), so that the two sums do not
// cancel. The inner loop multiplies integers brought to float32, and the sums of x over groups are made once
// for all rows. Layouts: core/numeric/gguf_layout.h. To be included inside the namespace of an instruction
// set.

struct UnpackedBlock {
  alignas(64) std::int8_t codes[256];
  alignas(64) float scales[16];
  alignas(64) float minima[16];
};

template <int Codes, int Group, bool Minimum>
struct BlockShape {
  static constexpr int kCodes = Codes, kGroup = Group, kGroups = Codes / Group;
  static constexpr bool kMinimum = Minimum;
};

// Numbers in half precision. Without F16C Highway takes infinities and NaN for numbers from 2^16 on.
template <class DF>
HWY_INLINE hn::Vec<DF> from_half(DF df, hn::Vec<hn::Rebind<std::uint16_t, DF>> bits) {
  const hn::Rebind<hwy::float16_t, DF> d_half;
  const auto value = hn::PromoteTo(df, hn::BitCast(d_half, bits));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return value;
#else
  const hn::RebindToUnsigned<DF> du;
  const auto wide = hn::PromoteTo(du, bits), exponent = hn::Set(du, 0x7C00);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000)));
  const auto mantissa = hn::ShiftLeft<13>(hn::And(wide, hn::Set(du, 0x03FF)));
  const auto special = hn::Or(hn::Or(sign, mantissa), hn::Set(du, 0x7F800000));
  return hn::IfThenElse(hn::RebindMask(df, hn::Eq(hn::And(wide, exponent), exponent)),
                        hn::BitCast(df, special), value);
#endif
}

HWY_INLINE float widen(gguf_blocks::Half half) {
  const hn::CappedTag<float, 4> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d_bits;
  return hn::GetLane(from_half(d, hn::Set(d_bits, static_cast<gguf_blocks::U16>(half).get())));
}

// The steps of unpacking, on as many bytes as a vector holds, 32 at most.
using Bytes = hn::CappedTag<std::uint8_t, 32>;
using SignedBytes = hn::RebindToSigned<Bytes>;
using VBytes = hn::Vec<Bytes>;

HWY_INLINE VBytes low_nibbles(VBytes v) {
  return hn::And(v, hn::Set(Bytes(), 15));
}
// Bytes have no shift of their own: neighbours' bits that 16-bit lanes bring along are cut off.
template <int Bits>
HWY_INLINE VBytes shift_right(VBytes v, std::uint8_t mask) {
#if HWY_TARGET == HWY_SCALAR
  return hn::And(hn::Set(Bytes(), static_cast<std::uint8_t>(hn::GetLane(v) >> Bits)), hn::Set(Bytes(), mask));
#else
  const hn::RepartitionToWide<Bytes> wide;
  return hn::And(hn::BitCast(Bytes(), hn::ShiftRight<Bits>(hn::BitCast(wide, v))), hn::Set(Bytes(), mask));
#endif
}
template <int Bits>
HWY_INLINE VBytes shift_left(VBytes v) {  // of bytes small enough to stay bytes
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Bytes(), static_cast<std::uint8_t>(hn::GetLane(v) << Bits));
#else
  const hn::RepartitionToWide<Bytes> wide;
  return hn::BitCast(Bytes(), hn::ShiftLeft<Bits>(hn::BitCast(wide, v)));
#endif
}
HWY_INLINE void store_codes(VBytes v, int offset, std::int8_t* codes) {
  const auto moved =
      hn::Sub(hn::BitCast(SignedBytes(), v), hn::Set(SignedBytes(), static_cast<std::int8_t>(offset)));
  hn::StoreU(moved, SignedBytes(), codes);
}

// `count` bytes of two nibbles: the low ones are codes 0 …, the high ones codes count ….
HWY_INLINE void unpack_nibbles(const std::uint8_t* qs, std::size_t count, int offset, std::int8_t* codes) {
  const hn::CappedTag<std::uint8_t, 16> half;
  const std::size_t lanes = hn::Lanes(half);
  using Half16 = decltype(half);
  const hn::RebindToSigned<Half16> signed_half;
  const auto moved = [&](auto v) {
    return hn::Sub(hn::BitCast(signed_half, v), hn::Set(signed_half, static_cast<std::int8_t>(offset)));
  };
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto v = hn::LoadU(half, qs + i);
#if HWY_TARGET == HWY_SCALAR
    const auto high = hn::Set(half, static_cast<std::uint8_t>(hn::GetLane(v) >> 4));
#else
    const hn::RepartitionToWide<Half16> wide;
    const auto high =
        hn::And(hn::BitCast(half, hn::ShiftRight<4>(hn::BitCast(wide, v))), hn::Set(half, std::uint8_t{15}));
#endif
    hn::StoreU(moved(hn::And(v, hn::Set(half, std::uint8_t{15}))), signed_half, codes + i);
    hn::StoreU(moved(high), signed_half, codes + count + i);
  }
}

struct Q4_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q4_0;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    unpack_nibbles(b.qs, 16, 8, u.codes);
    u.scales[0] = widen(b.d);
    return u.codes;
  }
};

struct Q4_1Block : BlockShape<32, 32, true> {
  using Stored = gguf_blocks::Q4_1;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    unpack_nibbles(b.qs, 16, 8, u.codes);
    u.scales[0] = widen(b.d);
    u.minima[0] = widen(b.m) + 8 * u.scales[0];
    return u.codes;
  }
};

// The fifth bits of all 32 codes stand in one word, code i's at bit i: in byte i / 8 of it.
#if HWY_TARGET != HWY_SCALAR
template <class D>  // of codes first … first + lanes - 1
HWY_INLINE hn::Mask<D> fifth_bits(D d, std::uint32_t high, std::size_t first) {
  alignas(32) static constexpr std::uint8_t kByte[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                         2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const auto bit = hn::BitCast(d, hn::Set(hn::Repartition<std::uint64_t, D>(), 0x8040201008040201u));
  const auto word = hn::BitCast(d, hn::Set(hn::Repartition<std::uint32_t, D>(), high));
  return hn::TestBit(hn::TableLookupBytes(word, hn::Load(d, kByte + first)), bit);
}
#endif
HWY_INLINE void add_fifth_bits(std::uint32_t high, int offset, std::int8_t* codes) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < 32; ++i)
    codes[i] = static_cast<std::int8_t>((codes[i] | static_cast<int>(high >> i & 1) << 4) - offset);
#else
  const Bytes d;
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto code = hn::Or(hn::BitCast(d, hn::LoadU(SignedBytes(), codes + i)),
                             hn::IfThenElseZero(fifth_bits(d, high, i), hn::Set(d, std::uint8_t{16})));
    store_codes(code, offset, codes + i);
  }
#endif
}

struct Q5_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q5_0;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    unpack_nibbles(b.qs, 16, 0, u.codes);
    add_fifth_bits(b.qh.get(), 16, u.codes);
    u.scales[0] = widen(b.d);
    return u.codes;
  }
};

struct Q5_1Block : BlockShape<32, 32, true> {
  using Stored = gguf_blocks::Q5_1;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    unpack_nibbles(b.qs, 16, 0, u.codes);
    add_fifth_bits(b.qh.get(), 16, u.codes);
    u.scales[0] = widen(b.d);
    u.minima[0] = widen(b.m) + 16 * u.scales[0];
    return u.codes;
  }
};

struct Q8_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q8_0;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    u.scales[0] = widen(b.d);
    return b.qs;
  }
};

// Eight 6-bit scales and minima in 12 bytes: the first four of each whole, in bytes 0–3 and 4–7, whose two
// upper bits go with the nibbles of bytes 8–11 to make the last four.
struct SixBitScales {
  alignas(16) std::uint8_t each[16];  // scales, then minima
};
// Those of groups 0 1 2 …, or 0 4 1 5 2 6 3 7.
template <bool ByTurns = false>
HWY_INLINE void unpack_six_bits(const std::uint8_t* packed, SixBitScales& s) {
#if HWY_TARGET == HWY_SCALAR
  static_assert(!ByTurns);
  std::uint32_t word[3];
  std::memcpy(word, packed, sizeof word);
  std::uint32_t bytes[4];  // scales 0–3, 4–7, minima 0–3, 4–7, a byte each
  bytes[0] = word[0] & 0x3F3F3F3Fu;
  bytes[1] = (word[2] & 0x0F0F0F0Fu) | (word[0] >> 2 & 0x30303030u);
  bytes[2] = word[1] & 0x3F3F3F3Fu;
  bytes[3] = (word[2] >> 4 & 0x0F0F0F0Fu) | (word[1] >> 2 & 0x30303030u);
  std::memcpy(s.each, bytes, sizeof bytes);
#else
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::FixedTag<std::uint8_t, 16> d8;
  // The four bytes read beyond belong to the block's codes.
  const auto words = hn::BitCast(d, hn::LoadU(d8, packed));
  const auto first = hn::And(words, hn::Set(d, 0x3F3F3F3Fu));
  const auto upper = hn::And(hn::ShiftRight<2>(words), hn::Set(d, 0x30303030u));
  alignas(16) static constexpr std::uint32_t kShifts[4] = {0, 4, 0, 4};
  const auto third = hn::And(hn::Shr(hn::Broadcast<2>(words), hn::Load(d, kShifts)), hn::Set(d, 0x0F0F0F0Fu));
  const auto last = hn::Or(third, upper);
  const auto all = ByTurns ? hn::InterleaveLower(d8, hn::BitCast(d8, first), hn::BitCast(d8, last))
                           : hn::BitCast(d8, hn::InterleaveLower(d, first, last));
  hn::Store(all, d8, s.each);
#endif
}

HWY_INLINE void unpack_scales(const std::uint8_t* packed, float d, float dmin, float centre,
                              UnpackedBlock& u) {
  SixBitScales bytes;
  unpack_six_bits(packed, bytes);
  const hn::CappedTag<float, 8> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::uint8_t, decltype(df)> db;
  for (std::size_t i = 0; i < 8; i += hn::Lanes(df)) {
    const auto scale = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(db, bytes.each + i)));
    const auto minimum = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(db, bytes.each + 8 + i)));
    const auto s = hn::Mul(scale, hn::Set(df, d));
    hn::StoreU(s, df, u.scales + i);
    hn::StoreU(hn::MulAdd(minimum, hn::Set(df, -dmin), hn::Mul(s, hn::Set(df, centre))), df, u.minima + i);
  }
}

struct Q4_KBlock : BlockShape<256, 32, true> {
  using Stored = gguf_blocks::Q4_K;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    const Bytes d;
    for (std::size_t part = 0; part < 4; ++part) {
      for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
        const VBytes v = hn::LoadU(d, b.qs + 32 * part + i);
        store_codes(low_nibbles(v), 8, u.codes + 64 * part + i);
        store_codes(shift_right<4>(v, 15), 8, u.codes + 64 * part + 32 + i);
      }
    }
    unpack_scales(b.scales, widen(b.d), widen(b.dmin), 8, u);
    return u.codes;
  }
};

struct Q5_KBlock : BlockShape<256, 32, true> {
  using Stored = gguf_blocks::Q5_K;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    const Bytes d;
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
      VBytes high = hn::LoadU(d, b.qh + i);
      for (std::size_t part = 0; part < 4; ++part) {
        const VBytes v = hn::LoadU(d, b.qs + 32 * part + i);
        const VBytes first =
            hn::And(shift_left<4>(hn::And(high, hn::Set(d, std::uint8_t{1}))), hn::Set(d, std::uint8_t{16}));
        const VBytes second =
            hn::And(shift_left<3>(hn::And(high, hn::Set(d, std::uint8_t{2}))), hn::Set(d, std::uint8_t{16}));
        store_codes(hn::Or(low_nibbles(v), first), 16, u.codes + 64 * part + i);
        store_codes(hn::Or(shift_right<4>(v, 15), second), 16, u.codes + 64 * part + 32 + i);
        high = shift_right<2>(high, 63);
      }
    }
    unpack_scales(b.scales, widen(b.d), widen(b.dmin), 16, u);
    return u.codes;
  }
};

struct Q6_KBlock : BlockShape<256, 16, false> {
  using Stored = gguf_blocks::Q6_K;
  static HWY_INLINE const std::int8_t* unpack(const Stored& b, UnpackedBlock& u) {
    const Bytes d;
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
        const VBytes first = hn::LoadU(d, b.ql + 64 * half + i),
                     second = hn::LoadU(d, b.ql + 64 * half + 32 + i);
        const VBytes high = hn::LoadU(d, b.qh + 32 * half + i);
        const VBytes two = hn::Set(d, std::uint8_t{3});
        std::int8_t* codes = u.codes + 128 * half + i;
        store_codes(hn::Or(low_nibbles(first), shift_left<4>(hn::And(high, two))), 32, codes);
        store_codes(hn::Or(low_nibbles(second), shift_left<4>(shift_right<2>(high, 3))), 32, codes + 32);
        store_codes(hn::Or(shift_right<4>(first, 15), shift_left<4>(shift_right<4>(high, 3))), 32,
                    codes + 64);
        store_codes(hn::Or(shift_right<4>(second, 15), shift_left<4>(shift_right<6>(high, 3))), 32,
                    codes + 96);
      }
    }
    const float scale = widen(b.d);
    const hn::CappedTag<float, 16> df;
    const hn::RebindToSigned<decltype(df)> di;
    const hn::Rebind<std::int8_t, decltype(df)> db;
    for (std::size_t i = 0; i < 16; i += hn::Lanes(df)) {
      const auto each = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(db, b.scales + i)));
      hn::StoreU(hn::Mul(each, hn::Set(df, scale)), df, u.scales + i);
    }
    return u.codes;
  }
};
