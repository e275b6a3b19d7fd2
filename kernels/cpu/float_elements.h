// Stored floating-point numbers as vectors of float32, and as integers under a scale for each 32 of them. To
// be included inside the namespace of an instruction set, after F32, V32 and block_codes.h.

// A vector from any address: files do not align their tensors.
template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const std::byte* at) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  std::memcpy(&value, at, sizeof value);
  return hn::Set(d, value);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(at)));
#endif
}

struct AsF32 {
  static constexpr std::size_t kBytes = 4;
  static HWY_INLINE V32 load(const std::byte* at) { return load_bytes(F32(), at); }
};

struct AsBF16 {
  static constexpr std::size_t kBytes = 2;
  static HWY_INLINE V32 load(const std::byte* at) {
    const hn::RebindToUnsigned<F32> du;
    const hn::Rebind<std::uint16_t, F32> half;
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(du, load_bytes(half, at))));
  }
};

struct AsF16 {
  static constexpr std::size_t kBytes = 2;
  static HWY_INLINE V32 load(const std::byte* at) {
    const hn::Rebind<std::uint16_t, F32> half;
    return from_half(F32(), load_bytes(half, at));
  }
};

// Of 32 BF16 or F16 weights, as kernels/operands/int16.h says; NaN where one is not finite. 11 bits at
// most do not round up to 2^12, so that codes need no clamp.
struct GroupScale {
  V32 scale, inverse;
};
template <class Element>
HWY_INLINE GroupScale scale_of(const std::byte* w) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  auto most = hn::Zero(di);  // of bits without their sign: NaN above all
  for (std::size_t i = 0; i < kInt16Group; i += hn::Lanes(d))
    most = hn::Max(most, hn::BitCast(di, hn::Abs(Element::load(w + i * Element::kBytes))));
  const auto exponents = hn::Set(di, 0x7F800000);
  const auto exponent = hn::And(hn::MaxOfLanes(di, most), exponents);
  const auto bits = hn::Sub(hn::Max(exponent, hn::Set(di, kInt16WeightBits << 23)),
                            hn::Set(di, (kInt16WeightBits - 1) << 23));
  const V32 nan = hn::BitCast(d, hn::Set(di, 0x7FC00000));
  return {hn::IfThenElse(hn::RebindMask(d, hn::Eq(exponent, exponents)), nan, hn::BitCast(d, bits)),
          hn::BitCast(d, hn::Sub(hn::Set(di, 254 << 23), bits))};
}
