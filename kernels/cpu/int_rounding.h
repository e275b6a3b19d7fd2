// Scale and codes of 32 inputs, bit for bit as kernels/operands/int16.h and int8_block.h
// say. To be included inside the namespace of an instruction set.

// The bits of the largest magnitude: without their sign, bits are ordered as integers too, NaN above all.
HWY_INLINE std::uint32_t largest_bits(const float* x) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  auto most = hn::Zero(di);
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d))
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most)));
}

HWY_INLINE float group_scale(const float* x, int bits) {
  const auto least = static_cast<std::uint32_t>(bits);
  const std::uint32_t exponent = largest_bits(x) >> 23;
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>((std::max(exponent, least) - least + 1) << 23);
}

HWY_INLINE float eight_bit_scale(const float* x) {
  const std::uint32_t largest = largest_bits(x);
  if (largest >> 23 == 255) return std::numeric_limits<float>::quiet_NaN();
  const float scale = std::bit_cast<float>(largest) / 127, least = std::numeric_limits<float>::min();
  return scale < least ? least : scale;
}

// x / scale in integers, at most `most` in magnitude, and their sums of each 16.
template <class Code>
HWY_INLINE void codes_within(float most, const float* x, float scale, Code* codes, std::int32_t (&sums)[2]) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<Code, decltype(d)> dc;
  const auto inverse = hn::Set(d, scale > 0 ? 1 / scale : 0.0F), limit = hn::Set(d, most);
  for (std::size_t half = 0; half < 2; ++half) {
    auto sum = hn::Zero(di);
    for (std::size_t i = 16 * half; i < 16 * half + 16; i += hn::Lanes(d)) {
      const auto scaled = hn::Mul(hn::LoadU(d, x + i), inverse);
      const auto q = hn::NearestInt(hn::Max(hn::Min(scaled, limit), hn::Neg(limit)));
      hn::StoreU(hn::DemoteTo(dc, q), dc, codes + i);
      sum = hn::Add(sum, q);
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(di, sum));
  }
}
HWY_INLINE void coarse_codes(const float* x, float scale, int bits, std::int16_t* codes,
                             std::int32_t (&sums)[2]) {
  codes_within(static_cast<float>((1 << bits) - 1), x, scale, codes, sums);
}
template <class Code>  // of 8 bits or more
HWY_INLINE void eight_bit_codes(const float* x, float scale, Code* codes, std::int32_t (&sums)[2]) {
  codes_within(127, x, scale, codes, sums);
}
