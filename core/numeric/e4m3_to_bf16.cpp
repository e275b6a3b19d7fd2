#include "core/numeric/e4m3_to_bf16.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "core/numeric/codec.h"
#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/e4m3_to_bf16.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef ASSAY_CORE_NUMERIC_E4M3_TO_BF16_SIXTEEN
#define ASSAY_CORE_NUMERIC_E4M3_TO_BF16_SIXTEEN
namespace assay {

// BF16's bits by a code's place: its magnitude below 8, else 8 + m, where 2^7 for E = 1 has been taken off. In halves, as
// vectors look them up.
struct SixteenBf16 {
  alignas(16) std::array<std::uint8_t, 16> lower, upper;

  explicit SixteenBf16(const std::array<std::uint16_t, 16>& rounded) {
    for (std::size_t place = 0; place < rounded.size(); ++place) {
      const unsigned bits = rounded[place] - (place < 8 ? 0u : 0x80u);
      lower[place] = static_cast<std::uint8_t>(bits & 0xFF);
      upper[place] = static_cast<std::uint8_t>(bits >> 8 & 0xFF);
    }
  }
  std::uint16_t of(std::uint8_t code) const {
    const unsigned magnitude = code & 0x7Fu, place = std::min(magnitude, (code & 7u) | 8u);
    const unsigned bits = lower[place] | unsigned{upper[place]} << 8;
    return static_cast<std::uint16_t>(bits + ((code & 0x78u) << 4) + ((code & 0x80u) << 8));
  }
};

}  // namespace assay
#endif

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// SixteenBf16::of, sixteen codes at a time; returns how many.
std::size_t cast_codes([[maybe_unused]] const std::uint8_t* codes, [[maybe_unused]] std::size_t count,
                       [[maybe_unused]] const SixteenBf16& table, [[maybe_unused]] std::uint16_t* out) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<std::uint8_t, 16> d8;
  const hn::FixedTag<std::uint16_t, 8> d16;
  // By a code's upper four bits, sign and E / 2: where they go in the upper half of BF16.
  alignas(16) static constexpr std::uint8_t kUpper[16] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                                          0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87};
  const auto by_nibble = hn::Load(d8, kUpper);
  const auto lower = hn::Load(d8, table.lower.data()), upper = hn::Load(d8, table.upper.data());
  for (; i + 16 <= count; i += 16) {
    const auto code = hn::LoadU(d8, codes + i);
    const auto magnitude = hn::And(code, hn::Set(d8, 0x7F));
    const auto place =
        hn::Min(magnitude, hn::Or(hn::And(code, hn::Set(d8, 0x07)), hn::Set(d8, std::uint8_t{0x08})));
    const auto nibble =
        hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, code))), hn::Set(d8, 0x0F));
    const auto odd = hn::And(hn::BitCast(d8, hn::ShiftLeft<4>(hn::BitCast(d16, code))), hn::Set(d8, 0x80));
    const auto moved = hn::TableLookupBytes(by_nibble, nibble);
    const auto low = hn::TableLookupBytes(lower, place), high = hn::TableLookupBytes(upper, place);
    const auto add = [&](auto bits, auto exponent) {
      return hn::Add(hn::BitCast(d16, bits), hn::BitCast(d16, exponent));
    };
    hn::StoreU(add(hn::InterleaveLower(d8, low, high), hn::InterleaveLower(d8, odd, moved)), d16, out + i);
    hn::StoreU(add(hn::InterleaveUpper(d8, low, high), hn::InterleaveUpper(d8, odd, moved)), d16,
               out + i + 8);
  }
#endif
  return i;
}

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {
namespace {

HWY_EXPORT(cast_codes);

constexpr std::size_t kMagnitudes = 128, kMantissas = 8, kExponents = 16;
constexpr std::size_t kNan = 0x7F;

// Products under a scale, by SixteenBf16's places.
std::array<float, 16> products_of(float scale) {
  static const std::array<float, 16> magnitudes = [] {
    std::array<float, 16> values{};
    std::array<std::byte, 16> codes{};
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
    decode(ElementType::F8_E4M3, codes, values.data());
    return values;
  }();
  std::array<float, 16> products = magnitudes;
  for (float& product : products) product *= scale;
  return products;
}

// How often each magnitude occurs. Four tables: one and the same code many times over would wait for itself.
class Occurrences {
 public:
  void add(const std::uint8_t* codes, std::size_t count) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, codes + i, sizeof eight);
      eight &= 0x7F7F7F7F'7F7F7F7Full;
      for (std::size_t byte = 0; byte < 8; ++byte) ++counts_[byte % 4][eight >> 8 * byte & 0xFF];
    }
    for (; i < count; ++i) ++counts_[0][codes[i] & 0x7F];
  }
  std::array<std::uint32_t, kMagnitudes> all() const {
    std::array<std::uint32_t, kMagnitudes> sums = counts_[0];
    for (std::size_t table = 1; table < counts_.size(); ++table)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counts_[table][i];
    return sums;
  }

 private:
  std::array<std::array<std::uint32_t, kMagnitudes>, 4> counts_{};
};

// Weighs the places' products and errors: a mantissa's squares count 4^(E-1) times for each occurrence under E.
Bf16Block measured(const std::array<std::uint32_t, kMagnitudes>& counts,
                   const std::array<float, 16>& products, const std::array<std::uint16_t, 16>& rounded) {
  std::array<double, 16> weights{};  // of squares
  std::array<double, 16> most{};     // by how much the largest of a place is larger
  for (std::size_t m = 0; m < kMantissas; ++m) weights[m] = counts[m], most[m] = counts[m] > 0 ? 1 : 0;
  double power = 1;
  for (std::size_t exponent = 1; exponent < kExponents; ++exponent, power *= 2) {
    for (std::size_t m = 0; m < kMantissas; ++m) {
      const std::uint32_t count = counts[exponent * kMantissas + m];
      weights[8 + m] += count * (power * power);
      most[8 + m] = count > 0 ? power : most[8 + m];
    }
  }
  Bf16Block block;
  double largest = 0;
  for (std::size_t place = 0; place < weights.size(); ++place) {
    const double x = products[place], e = std::bit_cast<float>(std::uint32_t{rounded[place]} << 16) - x;
    block.sums.before_squares += weights[place] * (x * x);
    block.sums.error_squares += weights[place] * (e * e);
    block.sums.products += weights[place] * (x * e);
    block.sums.largest = std::max(block.sums.largest, most[place] * std::abs(e));
    largest = std::max(largest, most[place] * std::abs(x));
  }
  block.largest = static_cast<float>(largest);
  return block;
}

}  // namespace

std::optional<Bf16Block> e4m3_to_bf16(const std::uint8_t* codes, std::size_t rows, std::size_t columns,
                                      std::size_t stride, float scale, std::uint16_t* out) {
  if (!(std::abs(scale) >= 0x1p-120F && std::abs(scale) <= 0x1p118F)) return std::nullopt;
  const std::array<float, 16> products = products_of(scale);
  std::array<std::uint16_t, 16> rounded{};
  encode(ElementType::BF16, products, Overflow::special, std::as_writable_bytes(std::span(rounded)).data());
  const SixteenBf16 table(rounded);
  Occurrences occurrences;
  for (std::size_t row = 0; row < rows; ++row, codes += stride, out += stride) {
    occurrences.add(codes, columns);
    const std::size_t done = HWY_DYNAMIC_DISPATCH(cast_codes)(codes, columns, table, out);
    for (std::size_t i = done; i < columns; ++i) out[i] = table.of(codes[i]);
  }
  const auto counts = occurrences.all();
  if (counts[kNan] > 0) return std::nullopt;
  return measured(counts, products, rounded);
}

}  // namespace assay
#endif
