#include "core/numeric/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/codec.h"

namespace assay {
namespace {

// Floats that read as sign and magnitude and fill a register lane.
FloatClasses float_classes(ElementType type) {
  switch (type) {
    case ElementType::F64: return {1LL << 52, 0x7FFLL << 52, (0x7FFLL << 52) + 1};
    case ElementType::BF16:
    case ElementType::F16:
    case ElementType::F8_E5M2: {
      const FloatFormat& format = *float_format(type);
      return {1LL << format.mantissa_bits, format.inf_code(), format.inf_code() + 1};
    }
    case ElementType::F8_E4M3: return {1LL << kE4M3FN.mantissa_bits, kE4M3FN.nan_code(), kE4M3FN.nan_code()};
    default: return {1LL << 23, 0xFFLL << 23, (0xFFLL << 23) + 1};  // float32
  }
}

bool is_signed(ElementType type) {
  return type == ElementType::I8 || type == ElementType::I16 || type == ElementType::I32 ||
         type == ElementType::I64;
}

std::size_t bytes_per_value(ElementType type) {
  return info(type).block_bytes / values_per_block(type);
}

double float_from_key(ElementType type, std::int64_t key) {
  if (type == ElementType::F64) {
    return std::bit_cast<double>(key < 0 ? key ^ std::numeric_limits<std::int64_t>::max() : key);
  }
  if (const FloatFormat* format = float_format(type)) {
    const std::int64_t magnitude_bits = format->sign_code() - 1;
    return decode(
        *format, static_cast<std::uint32_t>(key < 0 ? key ^ magnitude_bits : key) & (2 * magnitude_bits + 1));
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(key < 0 ? key ^ 0x7FFFFFFF : key));
}

double integer_from_key(ElementType type, std::int64_t key) {
  if (is_signed(type)) return static_cast<double>(key);
  // The key is the value less half of the range.
  if (type == ElementType::U64)
    return static_cast<double>(static_cast<std::uint64_t>(key) ^ std::uint64_t{1} << 63);
  return static_cast<double>(key + (std::int64_t{1} << (8 * bytes_per_value(type) - 1)));
}

void set_extremes(Numbers& numbers, double min, double max) {
  numbers.min = min + 0.0;  // -0 + 0 is +0
  numbers.max = max + 0.0;
  numbers.amax = std::max(std::abs(numbers.min), std::abs(numbers.max));
}

// A code of at most eight bits: its value, and whether that is subnormal in its type.
struct SmallValue {
  double value;
  bool subnormal;
};
SmallValue small_value(ElementType type, std::uint32_t code) {
  if (type == ElementType::F8_E8M0) return {decode_e8m0(static_cast<std::uint8_t>(code)), false};
  const FloatFormat* format = float_format(type);
  if (format == nullptr) return {static_cast<double>(code), false};  // BOOL
  const std::uint32_t magnitude = code & (format->sign_code() - 1);
  return {decode(*format, code), magnitude != 0 && magnitude < 1u << format->mantissa_bits};
}

}  // namespace

TensorStatistics::TensorStatistics(ElementType type) : type_(type), method_(method_for(type)) {
  if (method_ == Method::histogram) histograms_.resize(4);
  if (method_ == Method::dequantized) values_.resize(4096);
  partial_.reserve(info(type).block_bytes);
}

TensorStatistics::Method TensorStatistics::method_for(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3:
    case ElementType::F8_E5M2:
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
    case ElementType::C64:
    case ElementType::F64: return Method::floats;
    case ElementType::U8:
    case ElementType::I8:
    case ElementType::U16:
    case ElementType::I16:
    case ElementType::U32:
    case ElementType::I32:
    case ElementType::U64:
    case ElementType::I64: return Method::integers;
    case ElementType::BOOL:
    case ElementType::F4:
    case ElementType::F6_E2M3:
    case ElementType::F6_E3M2:
    case ElementType::F8_E8M0:
    case ElementType::F8_E4M3FNUZ:
    case ElementType::F8_E5M2FNUZ: return Method::histogram;
    default: return Method::dequantized;
  }
}

void TensorStatistics::update(std::span<const std::byte> piece) {
  const std::size_t block = info(type_).block_bytes;
  if (!partial_.empty()) {
    const std::span<const std::byte> missing = piece.first(std::min(block - partial_.size(), piece.size()));
    partial_.insert(partial_.end(), missing.begin(), missing.end());
    piece = piece.subspan(missing.size());
    if (partial_.size() < block) return;
    take_blocks(partial_);
    partial_.clear();
  }
  const std::size_t whole = piece.size() - piece.size() % block;
  take_blocks(piece.first(whole));
  partial_.assign(piece.begin() + static_cast<std::ptrdiff_t>(whole), piece.end());
}

void TensorStatistics::take_blocks(std::span<const std::byte> blocks) {
  const std::size_t width = bytes_per_value(type_);
  switch (method_) {
    case Method::floats:
      return tally_floats(blocks.data(), blocks.size() / width, static_cast<int>(width), float_classes(type_),
                          tally_);
    case Method::integers:
      return tally_integers(blocks.data(), blocks.size() / width, static_cast<int>(width), is_signed(type_),
                            tally_);
    case Method::histogram: return take_histogram(blocks);
    case Method::dequantized: return take_dequantized(blocks);
  }
}

// Counts bytes, so pairs of codes for F4; codes for F6.
void TensorStatistics::take_histogram(std::span<const std::byte> blocks) {
  if (type_ == ElementType::F6_E2M3 || type_ == ElementType::F6_E3M2) {
    for (std::size_t i = 0; i < blocks.size(); i += 3) {
      const auto byte = [&](std::size_t j) { return std::to_integer<std::uint32_t>(blocks[i + j]); };
      const std::uint32_t four = byte(0) | byte(1) << 8 | byte(2) << 16;
      for (std::size_t j = 0; j < 4; ++j) ++histograms_[j][four >> (6 * j) & 63];
    }
    return;
  }
  std::size_t i = 0;
  for (; i + 4 <= blocks.size(); i += 4) {
    for (std::size_t j = 0; j < 4; ++j) ++histograms_[j][std::to_integer<std::uint8_t>(blocks[i + j])];
  }
  for (; i < blocks.size(); ++i) ++histograms_[0][std::to_integer<std::uint8_t>(blocks[i])];
}

void TensorStatistics::take_dequantized(std::span<const std::byte> blocks) {
  const ElementInfo& block = info(type_);
  const std::size_t at_once = values_.size() / block.block_elements;
  while (!blocks.empty()) {
    const std::size_t count = std::min(at_once, blocks.size() / block.block_bytes);
    decode(type_, blocks.first(count * block.block_bytes), values_.data());
    tally_floats(std::as_bytes(std::span(values_)).data(), count * block.block_elements, sizeof(float),
                 float_classes(ElementType::F32), tally_);
    blocks = blocks.subspan(count * block.block_bytes);
  }
}

Numbers TensorStatistics::numbers() const {
  return method_ == Method::histogram ? from_histogram() : from_tally();
}

Numbers TensorStatistics::from_tally() const {
  Numbers numbers;
  numbers.count = tally_.count;
  numbers.nan = tally_.nan;
  numbers.inf = tally_.nonfinite - tally_.nan;
  numbers.zero = tally_.zero;
  numbers.negative = tally_.negative;
  if (method_ != Method::integers) numbers.subnormal = tally_.below_normal - tally_.zero;
  if (numbers.finite() == 0) return numbers;
  const auto value = [&](std::int64_t key) {
    return method_ == Method::integers ? integer_from_key(type_, key) : float_from_key(type_, key);
  };
  set_extremes(numbers, value(tally_.min_key), value(tally_.max_key));
  return numbers;
}

Numbers TensorStatistics::from_histogram() const {
  std::array<std::uint64_t, 256> counts{};
  for (const auto& histogram : histograms_) {
    for (std::size_t code = 0; code < 256; ++code) {
      if (type_ == ElementType::F4) {
        counts[code & 15] += histogram[code];
        counts[code >> 4] += histogram[code];
      } else {
        counts[code] += histogram[code];
      }
    }
  }
  Numbers numbers;
  double min = HUGE_VAL, max = -HUGE_VAL;
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint64_t times = counts[code];
    if (times == 0) continue;
    const auto [value, subnormal] = small_value(type_, code);
    numbers.count += times;
    if (std::isnan(value)) {  // none of these types has an Inf
      numbers.nan += times;
      continue;
    }
    if (value == 0) numbers.zero += times;
    if (value < 0) numbers.negative += times;
    if (subnormal) numbers.subnormal += times;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  if (numbers.finite() != 0) set_extremes(numbers, min, max);
  return numbers;
}

}  // namespace assay
