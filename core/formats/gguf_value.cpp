// What the metadata of a GGUF holds: types, arrays decoded on demand, look-ups.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/formats/gguf.h"
#include "core/system/error.h"

namespace assay::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are read as they lie in the file");

struct TypeInfo {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<TypeInfo, 13> kTypes = {{{"u8", 1},
                                              {"i8", 1},
                                              {"u16", 2},
                                              {"i16", 2},
                                              {"u32", 4},
                                              {"i32", 4},
                                              {"f32", 4},
                                              {"bool", 1},
                                              {"str", 0},
                                              {"arr", 0},
                                              {"u64", 8},
                                              {"i64", 8},
                                              {"f64", 8}}};

[[noreturn]] void wrong_type(ValueType have, std::string_view wanted) {
  throw Error::input(fmt::format("GGUF array holds {}, not {}", name(have), wanted));
}

// Calls take(T) for every element; the parser has made sure that `encoded` holds them all.
template <class T, class Take>
void each(const Array& array, Take take) {
  if (array.encoded.size() / sizeof(T) < array.count)
    throw Error::internal(fmt::format("a GGUF array of {} has {} bytes", array.count, array.encoded.size()));
  for (std::uint64_t i = 0; i < array.count; ++i) {
    T value;
    std::memcpy(&value, array.encoded.data() + i * sizeof(T), sizeof(T));
    take(value);
  }
}

template <class Take>
void each_integer(const Array& array, Take take) {
  switch (array.type) {
    case ValueType::u8: return each<std::uint8_t>(array, take);
    case ValueType::i8: return each<std::int8_t>(array, take);
    case ValueType::u16: return each<std::uint16_t>(array, take);
    case ValueType::i16: return each<std::int16_t>(array, take);
    case ValueType::u32: return each<std::uint32_t>(array, take);
    case ValueType::i32: return each<std::int32_t>(array, take);
    case ValueType::u64: return each<std::uint64_t>(array, take);
    case ValueType::i64: return each<std::int64_t>(array, take);
    case ValueType::boolean: return each<std::int8_t>(array, [&](std::int8_t v) { take(v != 0 ? 1 : 0); });
    default: wrong_type(array.type, "whole numbers");
  }
}

}  // namespace

std::string_view name(ValueType type) {
  return kTypes.at(static_cast<std::size_t>(type)).name;
}
std::uint64_t value_bytes(ValueType type) {
  return kTypes.at(static_cast<std::size_t>(type)).bytes;
}

std::optional<std::uint64_t> padded(std::uint64_t bytes, std::uint64_t alignment) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(bytes, alignment - 1, &sum)) return std::nullopt;
  return sum & ~(alignment - 1);
}

std::vector<std::string> Array::strings() const {
  const auto too_short = [&](std::uint64_t i, std::string_view rest) {
    return Error::internal(
        fmt::format("string {} of {} of a GGUF array: {} bytes are left", i, count, rest.size()));
  };
  if (type != ValueType::string) wrong_type(type, "strings");
  std::vector<std::string> result;
  std::string_view rest = encoded;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    if (rest.size() < sizeof length) throw too_short(i, rest);
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (rest.size() < length) throw too_short(i, rest);
    result.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return result;
}

std::vector<std::int64_t> Array::integers() const {
  std::vector<std::int64_t> result;
  each_integer(*this, [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::uint64_t>) {
      if (value > std::numeric_limits<std::int64_t>::max()) {
        throw Error::input(fmt::format("GGUF array holds {}, which is beyond 63 bits", value));
      }
    }
    result.push_back(static_cast<std::int64_t>(value));
  });
  return result;
}

std::vector<double> Array::numbers() const {
  std::vector<double> result;
  const auto take = [&](auto value) { result.push_back(static_cast<double>(value)); };
  if (type == ValueType::f32) {
    each<float>(*this, take);
  } else if (type == ValueType::f64) {
    each<double>(*this, take);
  } else {
    each_integer(*this, take);
  }
  return result;
}

const KeyValue* Header::find(std::string_view key) const {
  const auto it =
      std::find_if(metadata.begin(), metadata.end(), [&](const KeyValue& kv) { return kv.key == key; });
  return it == metadata.end() ? nullptr : &*it;
}

std::optional<std::string> Header::text(std::string_view key) const {
  const KeyValue* kv = find(key);
  const auto* value = kv == nullptr ? nullptr : std::get_if<std::string>(&kv->value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::uint64_t> Header::number(std::string_view key) const {
  const KeyValue* kv = find(key);
  if (kv == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<std::uint64_t>(&kv->value)) return *value;
  const auto* value = std::get_if<std::int64_t>(&kv->value);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<Split> Header::split() const {
  const auto count = number("split.count");
  if (!count || *count < 2) return std::nullopt;
  return Split{number("split.no").value_or(0), *count, number("split.tensors.count").value_or(0)};
}

}  // namespace assay::gguf
