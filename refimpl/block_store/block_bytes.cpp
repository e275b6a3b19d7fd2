#include "refimpl/block_store/block_bytes.h"

#include <openssl/evp.h>

#include <cstring>

#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

template <class T, class Value>
void put_as(std::vector<std::byte>& out, std::span<const double> numbers, const Value& value_of) {
  const std::size_t begin = out.size();
  out.resize(begin + numbers.size() * sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T value = value_of(numbers[i]);
    std::memcpy(out.data() + begin + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T, class Value>
void get_as(std::span<const std::byte> bytes, std::span<double> numbers, const Value& number_of) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = number_of(value);
  }
}

}  // namespace

BlockKey sha256_of(std::span<const std::byte> bytes) {
  BlockKey digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.bytes.data(), &size, EVP_sha256(), nullptr) != 1 ||
      size != digest.bytes.size())
    throw Error::internal("SHA-256 of a block failed");
  return digest;
}

void put_number(std::vector<std::byte>& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) out.push_back(static_cast<std::byte>(value >> shift));
}

std::uint64_t whole_number_at(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

void put_bytes(std::vector<std::byte>& out, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) out.push_back(static_cast<std::byte>(byte));
}

void put_numbers(std::vector<std::byte>& out, std::span<const double> numbers, NumberWidth width) {
  switch (width) {
    case NumberWidth::bf16:
      return put_as<std::uint16_t>(out, numbers, [](double x) {
        return static_cast<std::uint16_t>(encode(kBF16, static_cast<float>(x), Overflow::special));
      });
    case NumberWidth::f32: return put_as<float>(out, numbers, [](double x) { return static_cast<float>(x); });
    case NumberWidth::f64: return put_as<double>(out, numbers, [](double x) { return x; });
  }
}

void get_numbers(std::span<const std::byte> bytes, NumberWidth width, std::span<double> numbers) {
  switch (width) {
    case NumberWidth::bf16:
      return get_as<std::uint16_t>(bytes, numbers,
                                   [](std::uint16_t code) { return double{decode(kBF16, code)}; });
    case NumberWidth::f32: return get_as<float>(bytes, numbers, [](float x) { return double{x}; });
    case NumberWidth::f64: return get_as<double>(bytes, numbers, [](double x) { return x; });
  }
}

Matrix matrix_of(Ops& ops, std::span<const std::byte> bytes, std::size_t rows, std::size_t columns) {
  const auto memory = std::shared_ptr<std::byte[]>(new std::byte[bytes.size()]);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  const Matrix made = ops.allocate(rows, columns);
  ops.store({.base = made}, 0, Matrix(memory, ops.arithmetic().storage(), rows, columns));
  return made;
}

}  // namespace assay
