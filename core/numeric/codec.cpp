#include "core/numeric/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <string>

#include "core/numeric/gguf_blocks.h"
#include "core/system/error.h"

namespace assay {
namespace {

template <class Element>
Element load(const std::byte* from) {
  Element element;
  std::memcpy(&element, from, sizeof element);
  return element;
}

template <const FloatFormat& format>
constexpr std::array<float, 256> decode_table() {
  std::array<float, 256> table{};
  for (std::uint32_t code = 0; code < 256; ++code) table[code] = decode(format, code);
  return table;
}
template <const FloatFormat& format>
constexpr std::array<float, 256> kTable = decode_table<format>();

template <class Stored, class Out>
void convert(std::span<const std::byte> stored, Out* out) {
  const std::size_t count = stored.size() / sizeof(Stored);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<Out>(load<Stored>(stored.data() + i * sizeof(Stored)));
  }
}

template <const FloatFormat& format, class Out>
void look_up(std::span<const std::byte> stored, Out* out) {
  for (std::size_t i = 0; i < stored.size(); ++i)
    out[i] = kTable<format>[std::to_integer<std::uint8_t>(stored[i])];
}

template <const FloatFormat& format, class Out>
void decode_16(std::span<const std::byte> stored, Out* out) {
  for (std::size_t i = 0; i + 1 < stored.size(); i += 2) {
    out[i / 2] = decode(format, load<std::uint16_t>(stored.data() + i));
  }
}

// The two values of every byte.
constexpr std::array<std::array<float, 2>, 256> kF4Pairs = [] {
  std::array<std::array<float, 2>, 256> pairs{};
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    pairs[byte] = {decode(kE2M1, byte & 0xF), decode(kE2M1, byte >> 4)};
  return pairs;
}();

template <class Out>
void decode_f4(std::span<const std::byte> stored, Out* out) {
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto& pair = kF4Pairs[std::to_integer<std::uint8_t>(stored[i])];
    out[2 * i] = pair[0];
    out[2 * i + 1] = pair[1];
  }
}

template <const FloatFormat& format, class Out>
void decode_f6(std::span<const std::byte> stored, Out* out) {
  for (std::size_t block = 0; block < stored.size() / 3; ++block) {
    const std::byte* bytes = stored.data() + 3 * block;
    const std::uint32_t four = load<std::uint16_t>(bytes) | std::to_integer<std::uint32_t>(bytes[2]) << 16;
    for (int i = 0; i < 4; ++i) out[4 * block + i] = decode(format, four >> (6 * i) & 0x3F);
  }
}

template <class Out>
void decode_blocks(ElementType type, std::span<const std::byte> stored, Out* out) {
  switch (type) {
    case ElementType::BOOL:
    case ElementType::U8: return convert<std::uint8_t>(stored, out);
    case ElementType::I8: return convert<std::int8_t>(stored, out);
    case ElementType::U16: return convert<std::uint16_t>(stored, out);
    case ElementType::I16: return convert<std::int16_t>(stored, out);
    case ElementType::U32: return convert<std::uint32_t>(stored, out);
    case ElementType::I32: return convert<std::int32_t>(stored, out);
    case ElementType::U64: return convert<std::uint64_t>(stored, out);
    case ElementType::I64: return convert<std::int64_t>(stored, out);
    case ElementType::F32:
    case ElementType::C64: return convert<float>(stored, out);
    case ElementType::F64: return convert<double>(stored, out);
    case ElementType::BF16: return decode_16<kBF16>(stored, out);
    case ElementType::F16: return decode_16<kF16>(stored, out);
    case ElementType::F8_E4M3: return look_up<kE4M3FN>(stored, out);
    case ElementType::F8_E5M2: return look_up<kE5M2>(stored, out);
    case ElementType::F8_E4M3FNUZ: return look_up<kE4M3FNUZ>(stored, out);
    case ElementType::F8_E5M2FNUZ: return look_up<kE5M2FNUZ>(stored, out);
    case ElementType::F8_E8M0:
      for (const std::byte code : stored) *out++ = decode_e8m0(std::to_integer<std::uint8_t>(code));
      return;
    case ElementType::F6_E2M3: return decode_f6<kE2M3>(stored, out);
    case ElementType::F6_E3M2: return decode_f6<kE3M2>(stored, out);
    case ElementType::F4: return decode_f4(stored, out);
    default: break;
  }
  if constexpr (std::same_as<Out, float>) {
    dequantize(type, stored, out);
  } else {
    std::array<float, 256> block;
    const ElementInfo& i = info(type);
    for (; !stored.empty(); stored = stored.subspan(i.block_bytes), out += i.block_elements) {
      dequantize(type, stored.first(i.block_bytes), block.data());
      std::copy_n(block.data(), i.block_elements, out);
    }
  }
}

void require_whole_blocks(ElementType type, std::size_t bytes) {
  if (bytes % info(type).block_bytes == 0) return;
  throw Error::internal("decoding " + std::to_string(bytes) + " bytes, which are not whole blocks of " +
                        std::string(name(type)));
}

template <class Integer>
Integer to_integer(float x) {
  if (std::isnan(x)) return 0;
  const double rounded = std::nearbyint(static_cast<double>(x));
  if (rounded <= static_cast<double>(std::numeric_limits<Integer>::min()))
    return std::numeric_limits<Integer>::min();
  if (rounded >= static_cast<double>(std::numeric_limits<Integer>::max()))
    return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(rounded);
}

template <class Element, class Convert>
void store_each(std::span<const float> values, std::byte* out, Convert convert_one) {
  for (const float value : values) {
    const Element element = static_cast<Element>(convert_one(value));
    std::memcpy(out, &element, sizeof element);
    out += sizeof element;
  }
}

template <class Integer>
void store_integers(std::span<const float> values, std::byte* out) {
  store_each<Integer>(values, out, [](float x) { return to_integer<Integer>(x); });
}

// `bits` a value, from the lowest bit of the block up.
void store_packed(const FloatFormat& format, int bits, int block, std::span<const float> values,
                  Overflow overflow, std::byte* out) {
  for (std::size_t i = 0; i + block <= values.size(); i += block) {
    std::uint32_t packed = 0;
    for (int j = 0; j < block; ++j) packed |= encode(format, values[i + j], overflow) << (bits * j);
    for (int byte = 0; byte < bits * block / 8; ++byte) *out++ = static_cast<std::byte>(packed >> (8 * byte));
  }
}

}  // namespace

const FloatFormat* float_format(ElementType type) {
  switch (type) {
    case ElementType::BF16: return &kBF16;
    case ElementType::F16: return &kF16;
    case ElementType::F8_E4M3: return &kE4M3FN;
    case ElementType::F8_E5M2: return &kE5M2;
    case ElementType::F8_E4M3FNUZ: return &kE4M3FNUZ;
    case ElementType::F8_E5M2FNUZ: return &kE5M2FNUZ;
    case ElementType::F6_E2M3: return &kE2M3;
    case ElementType::F6_E3M2: return &kE3M2;
    case ElementType::F4: return &kE2M1;
    default: return nullptr;
  }
}

std::size_t values_per_block(ElementType type) {
  return info(type).block_elements * (type == ElementType::C64 ? std::size_t{2} : std::size_t{1});
}

void decode(ElementType type, std::span<const std::byte> stored, float* out) {
  require_whole_blocks(type, stored.size());
  decode_blocks(type, stored, out);
}

void decode(ElementType type, std::span<const std::byte> stored, double* out) {
  require_whole_blocks(type, stored.size());
  decode_blocks(type, stored, out);
}

void encode(ElementType type, std::span<const float> values, Overflow overflow, std::byte* out) {
  if (values.size() % values_per_block(type) != 0) {
    throw Error::internal(std::to_string(values.size()) + " values do not fill blocks of " +
                          std::string(name(type)));
  }
  switch (type) {
    case ElementType::BOOL: return store_each<std::uint8_t>(values, out, [](float x) { return x != 0; });
    case ElementType::U8: return store_integers<std::uint8_t>(values, out);
    case ElementType::I8: return store_integers<std::int8_t>(values, out);
    case ElementType::U16: return store_integers<std::uint16_t>(values, out);
    case ElementType::I16: return store_integers<std::int16_t>(values, out);
    case ElementType::U32: return store_integers<std::uint32_t>(values, out);
    case ElementType::I32: return store_integers<std::int32_t>(values, out);
    case ElementType::U64: return store_integers<std::uint64_t>(values, out);
    case ElementType::I64: return store_integers<std::int64_t>(values, out);
    case ElementType::F32:
    case ElementType::C64: return store_each<float>(values, out, [](float x) { return x; });
    case ElementType::F64: return store_each<double>(values, out, [](float x) { return x; });
    case ElementType::F8_E8M0:
      return store_each<std::uint8_t>(values, out,
                                      [](float x) { return encode_e8m0(x, PowerRounding::nearest); });
    case ElementType::F4: return store_packed(kE2M1, 4, 2, values, overflow, out);
    case ElementType::F6_E2M3: return store_packed(kE2M3, 6, 4, values, overflow, out);
    case ElementType::F6_E3M2: return store_packed(kE3M2, 6, 4, values, overflow, out);
    default: break;
  }
  const FloatFormat* format = float_format(type);
  if (format == nullptr) throw Error::internal("no encoder for " + std::string(name(type)));
  const auto code = [&](float x) { return encode(*format, x, overflow); };
  if (info(type).block_bytes == 2) return store_each<std::uint16_t>(values, out, code);
  store_each<std::uint8_t>(values, out, code);
}

}  // namespace assay
