// Scale and 16-bit codes of 32 numbers, bit for bit as refimpl/ops/int16_activations.h says. To be included
// inside the namespace of an instruction set.

HWY_INLINE float group_scale(const float* x, unsigned bits) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;  // without their sign, bits are ordered as integers too
  auto most = hn::Zero(di);
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d))
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  const auto largest = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most)));
  const std::uint32_t exponent = largest >> 23;
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>((std::max(exponent, bits) - bits + 1) << 23);
}

HWY_INLINE void coarse_codes(const float* x, float scale, unsigned bits, std::int16_t* codes) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int16_t, decltype(d)> dh;
  const auto inverse = hn::Set(d, scale > 0 ? 1 / scale : 0.0F),
             most = hn::Set(d, static_cast<float>((1u << bits) - 1));
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), inverse);
    hn::StoreU(hn::DemoteTo(dh, hn::NearestInt(hn::Max(hn::Min(scaled, most), hn::Neg(most)))), dh,
               codes + i);
  }
}
