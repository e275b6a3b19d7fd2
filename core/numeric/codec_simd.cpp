#include "core/numeric/codec_simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/numeric/float_loops.h"
#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/codec_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // no vectors: the scalar codecs do it all

std::size_t decode_some(ElementType, const std::byte*, std::size_t, float*) {
  return 0;
}
std::size_t encode_some(ElementType, const float*, std::size_t, Overflow, std::byte*) {
  return 0;
}
std::size_t decode_some_times(ElementType, const std::byte*, std::size_t, float, float*) {
  return 0;
}

#else

using D32 = hn::ScalableTag<std::uint32_t>;
using V32 = hn::Vec<D32>;

constexpr std::uint32_t kFloatInf = 0x7F800000, kFloatQuiet = 0x00400000;

// A power of two so large that the last place of numbers from it up is the format's smallest subnormal:
// adding it rounds to a whole number of those (to nearest, even), which then is the low end of the sum's
// mantissa.
template <const FloatFormat& format>
constexpr std::uint32_t kSubnormalAdder =
    static_cast<std::uint32_t>(127 + 23 + 1 - format.bias - format.mantissa_bits) << 23;

template <const FloatFormat& format>
HWY_INLINE V32 decode_lanes(V32 code) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  constexpr int kShift = 23 - format.mantissa_bits,
                kSignShift = 31 - format.exponent_bits - format.mantissa_bits;
  if constexpr (format == kBF16) return hn::ShiftLeft<16>(code);
  const V32 magnitude = hn::And(code, hn::Set(d, format.sign_code() - 1));
  const V32 sign = hn::ShiftLeft<kSignShift>(hn::Xor(code, magnitude));
  const V32 shifted = hn::ShiftLeft<kShift>(magnitude);
  const V32 normal = hn::Add(shifted, hn::Set(d, static_cast<std::uint32_t>(127 - format.bias) << 23));
  const V32 adder = hn::Set(d, kSubnormalAdder<format>);
  const V32 subnormal =
      hn::BitCast(d, hn::Sub(hn::BitCast(df, hn::Or(magnitude, adder)), hn::BitCast(df, adder)));
  V32 bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1u << format.mantissa_bits)), subnormal, normal);
  if constexpr (format.special == Special::ieee) {
    const V32 inf = hn::Set(d, format.inf_code());
    bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, format.max_code())),
                          hn::Or(shifted, hn::Set(d, kFloatInf)), bits);
    const V32 nan = format.mantissa_bits >= 7 ? hn::Or(bits, hn::Set(d, kFloatQuiet))
                                              : hn::Set(d, kFloatInf | kFloatQuiet);
    bits = hn::IfThenElse(hn::Gt(magnitude, inf), nan, bits);
  } else if constexpr (format.special == Special::nan_at_negative_zero) {
    return hn::IfThenElse(hn::Eq(code, hn::Set(d, format.nan_code())),
                          hn::Set(d, 0x80000000u | kFloatInf | kFloatQuiet), hn::Or(bits, sign));
  } else {
    bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, format.nan_code())),
                          hn::Set(d, kFloatInf | kFloatQuiet), bits);
  }
  return hn::Or(bits, sign);
}

template <const FloatFormat& format>
HWY_INLINE V32 encode_lanes(V32 bits, std::uint32_t overflow_code) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  constexpr int kShift = 23 - format.mantissa_bits,
                kSignShift = 31 - format.exponent_bits - format.mantissa_bits;
  const V32 magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
  const V32 sign = hn::ShiftRight<kSignShift>(hn::Xor(bits, magnitude));
  // Half of the last place, less a little where the last bit kept is even: then a carry means "rounds up".
  const V32 last_bit = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, 1u));
  const V32 rounded = hn::Add(hn::Add(magnitude, last_bit), hn::Set(d, (1u << (kShift - 1)) - 1));
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - format.bias) << format.mantissa_bits;
  V32 code = hn::Sub(hn::ShiftRight<kShift>(rounded), hn::Set(d, kRebias));
  if constexpr (format.bias != 127) {  // BF16 has float32's exponents, so its subnormals need no other path
    const V32 adder = hn::Set(d, kSubnormalAdder<format>);
    const auto sum = hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, adder));
    const V32 first_normal = hn::Set(d, static_cast<std::uint32_t>(127 + 1 - format.bias) << 23);
    code = hn::IfThenElse(hn::Lt(magnitude, first_normal), hn::Sub(hn::BitCast(d, sum), adder), code);
  }
  code = hn::IfThenElse(hn::Gt(code, hn::Set(d, format.max_code())), hn::Set(d, overflow_code), code);
  V32 nan = hn::Set(d, format.nan_code());
  if constexpr (format.special == Special::ieee && format.mantissa_bits >= 7) {
    nan = hn::Or(nan, hn::ShiftRight<kShift>(hn::And(magnitude, hn::Set(d, 0x7FFFFFu))));
  }
  code = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kFloatInf)), nan, code);
  if constexpr (format.special == Special::nan_at_negative_zero) {  // there is no -0
    return hn::IfThenElse(hn::Eq(code, hn::Zero(d)), code, hn::Or(code, sign));
  }
  return hn::Or(code, sign);
}

// Both return how many values they did: all but a rest shorter than a vector.
template <const FloatFormat& format, class Stored>
std::size_t decode_vectors(const std::byte* stored, std::size_t count, float* out) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  const hn::Rebind<Stored, D32> stored_d;
  const hn::Repartition<std::uint8_t, decltype(stored_d)> bytes_d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(stored + i * sizeof(Stored));
    const auto code = hn::PromoteTo(d, hn::BitCast(stored_d, hn::LoadU(bytes_d, from)));
    hn::StoreU(hn::BitCast(df, decode_lanes<format>(code)), df, out + i);
  }
  return i;
}

template <const FloatFormat& format, class Stored>
std::size_t encode_vectors(const float* values, std::size_t count, Overflow overflow, std::byte* out) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  const hn::RebindToSigned<D32> di;
  const hn::Rebind<Stored, D32> stored_d;
  const hn::Repartition<std::uint8_t, decltype(stored_d)> bytes_d;
  const std::size_t lanes = hn::Lanes(d);
  const std::uint32_t inf = format.special == Special::ieee ? format.inf_code() : format.nan_code();
  const std::uint32_t overflow_code = overflow == Overflow::saturate ? format.max_code() : inf;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V32 code = encode_lanes<format>(hn::BitCast(d, hn::LoadU(df, values + i)), overflow_code);
    const auto narrow = hn::DemoteTo(stored_d, hn::BitCast(di, code));
    hn::StoreU(hn::BitCast(bytes_d, narrow), bytes_d,
               reinterpret_cast<std::uint8_t*>(out + i * sizeof(Stored)));
  }
  return i;
}

// To BF16 with its infinities, two vectors at a time: float32's upper half, rounded up by a carry, in which a
// number too large becomes infinite by itself. A NaN stays one: its quiet bit is set.
std::size_t encode_bf16(const float* values, std::size_t count, std::byte* out) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  const hn::Rebind<std::uint16_t, D32> half_d;
  const hn::Repartition<std::uint8_t, decltype(half_d)> bytes_d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V32 bits = hn::BitCast(d, hn::LoadU(df, values + i));
    const V32 upper = hn::ShiftRight<16>(bits);
    const V32 half = hn::Add(hn::And(upper, hn::Set(d, 1u)), hn::Set(d, 0x7FFFu));
    const auto is_nan = hn::IsNaN(hn::BitCast(df, bits));
    const V32 code = hn::IfThenElse(hn::RebindMask(d, is_nan), hn::Or(upper, hn::Set(d, 0x40u)),
                                    hn::ShiftRight<16>(hn::Add(bits, half)));
    const auto narrow = hn::TruncateTo(half_d, code);
    hn::StoreU(hn::BitCast(bytes_d, narrow), bytes_d, reinterpret_cast<std::uint8_t*>(out + i * 2));
  }
  return i;
}

#if HWY_TARGET != HWY_SSE2 && HWY_TARGET != HWY_SSSE3 && HWY_TARGET != HWY_SSE4 && HWY_ARCH_X86
// E4M3 × factor by way of F16, which the processor widens: the same fields under a bias that is 8 larger, for
// which the factor, 256 times as large, makes up exactly. E4M3's one NaN would be 480, 1.875 as F16 has it.
std::size_t decode_e4m3(const std::byte* stored, std::size_t count, float factor_256, float* out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> half_d;
  const hn::Rebind<std::int16_t, decltype(df)> d16;
  const hn::Rebind<std::int8_t, decltype(df)> d8;
  const std::size_t lanes = hn::Lanes(df);
  const auto quiet = hn::BitCast(df, hn::Set(D32(), kFloatInf | kFloatQuiet));
  const auto all_but_second = hn::Set(d16, static_cast<std::int16_t>(0xBFFF));  // the sign came there, too
  const auto factor = hn::Set(df, factor_256);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto code = hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(stored + i)));
    const auto half = hn::And(hn::ShiftLeft<7>(code), all_but_second);
    const auto value = hn::PromoteTo(df, hn::BitCast(half_d, half));
    const auto is_nan = hn::Eq(hn::Abs(value), hn::Set(df, 1.875F));
    hn::StoreU(hn::IfThenElse(is_nan, hn::CopySign(quiet, value), hn::Mul(value, factor)), df, out + i);
  }
  return i;
}
#define ASSAY_E4M3_BY_F16 1
#else
#define ASSAY_E4M3_BY_F16 0
#endif

// INT8 as codec.cpp has it: to nearest, even, clamped; NaN becomes 0.
std::size_t decode_int8(const std::byte* stored, std::size_t count, float* out) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::int8_t, decltype(di)> d8;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto codes = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(stored + i));
    hn::StoreU(hn::ConvertTo(df, hn::PromoteTo(di, codes)), df, out + i);
  }
  return i;
}

std::size_t encode_int8(const float* values, std::size_t count, std::byte* out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<std::int8_t, decltype(df)> d8;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(df, values + i);
    const auto number = hn::IfThenElseZero(hn::Eq(x, x), x);
    const auto clamped = hn::Min(hn::Max(number, hn::Set(df, -128.0F)), hn::Set(df, 127.0F));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(clamped)), d8, reinterpret_cast<std::int8_t*>(out + i));
  }
  return i;
}

std::size_t decode_some(ElementType type, const std::byte* stored, std::size_t count, float* out) {
  switch (type) {
    case ElementType::BF16: return decode_vectors<kBF16, std::uint16_t>(stored, count, out);
    case ElementType::F16: return decode_vectors<kF16, std::uint16_t>(stored, count, out);
#if ASSAY_E4M3_BY_F16
    case ElementType::F8_E4M3: return decode_e4m3(stored, count, 256.0F, out);
#else
    case ElementType::F8_E4M3: return decode_vectors<kE4M3FN, std::uint8_t>(stored, count, out);
#endif
    case ElementType::F8_E5M2: return decode_vectors<kE5M2, std::uint8_t>(stored, count, out);
    case ElementType::F8_E4M3FNUZ: return decode_vectors<kE4M3FNUZ, std::uint8_t>(stored, count, out);
    case ElementType::F8_E5M2FNUZ: return decode_vectors<kE5M2FNUZ, std::uint8_t>(stored, count, out);
    case ElementType::I8: return decode_int8(stored, count, out);
    default: return 0;
  }
}

std::size_t encode_some(ElementType type, const float* values, std::size_t count, Overflow overflow,
                        std::byte* out) {
  switch (type) {
    case ElementType::BF16:
      if (overflow == Overflow::special) return encode_bf16(values, count, out);
      return encode_vectors<kBF16, std::uint16_t>(values, count, overflow, out);
    case ElementType::F16: return encode_vectors<kF16, std::uint16_t>(values, count, overflow, out);
    case ElementType::F8_E4M3: return encode_vectors<kE4M3FN, std::uint8_t>(values, count, overflow, out);
    case ElementType::F8_E5M2: return encode_vectors<kE5M2, std::uint8_t>(values, count, overflow, out);
    case ElementType::F8_E4M3FNUZ:
      return encode_vectors<kE4M3FNUZ, std::uint8_t>(values, count, overflow, out);
    case ElementType::F8_E5M2FNUZ:
      return encode_vectors<kE5M2FNUZ, std::uint8_t>(values, count, overflow, out);
    case ElementType::I8: return encode_int8(values, count, out);
    default: return 0;
  }
}

// decode_some × factor in one go; nothing where there is no such loop, or 256 times the factor is no number.
std::size_t decode_some_times([[maybe_unused]] ElementType type, [[maybe_unused]] const std::byte* stored,
                              [[maybe_unused]] std::size_t count, [[maybe_unused]] float factor,
                              [[maybe_unused]] float* out) {
#if ASSAY_E4M3_BY_F16
  if (type == ElementType::F8_E4M3 && std::isfinite(factor * 256))
    return decode_e4m3(stored, count, factor * 256, out);
#endif
  return 0;
}

#undef ASSAY_E4M3_BY_F16
#endif  // HWY_SCALAR

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {

HWY_EXPORT(decode_some);
HWY_EXPORT(encode_some);
HWY_EXPORT(decode_some_times);

void simd::decode(ElementType type, std::span<const std::byte> stored, float* out) {
  const std::size_t block = info(type).block_bytes;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(decode_some)(type, stored.data(), stored.size() / block, out);
  assay::decode(type, stored.subspan(done * block), out + done);
}

void simd::decode_scaled(ElementType type, std::span<const std::byte> stored, std::size_t block,
                         const float* scales, float* out) {
  if (type != ElementType::F8_E4M3) {
    simd::decode(type, stored, out);
    const ElementInfo& element = info(type);
    multiply_blocks(out, stored.size() / element.block_bytes * element.block_elements, block, scales);
    return;
  }
  for (; !stored.empty(); ++scales) {  // a code is a byte
    const std::size_t count = std::min(block, stored.size());
    const std::size_t done =
        HWY_DYNAMIC_DISPATCH(decode_some_times)(type, stored.data(), count, *scales, out);
    simd::decode(type, stored.first(count).subspan(done), out + done);
    multiply_blocks(out + done, count - done, block, scales);
    out += count;
    stored = stored.subspan(count);
  }
}

void simd::encode(ElementType type, std::span<const float> values, Overflow overflow, std::byte* out) {
  const std::size_t done =
      HWY_DYNAMIC_DISPATCH(encode_some)(type, values.data(), values.size(), overflow, out);
  assay::encode(type, values.subspan(done), overflow, out + done * info(type).block_bytes);
}

}  // namespace assay
#endif
