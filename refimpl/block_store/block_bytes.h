// Numbers of caches as bytes, in files and on the wire: little-endian, as wide as they need to be; and the digest that ends
// what they stand in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "refimpl/engine/block_key.h"
#include "refimpl/ops/interface.h"

namespace assay {

inline constexpr std::size_t kDigestBytes = 32;
BlockKey sha256_of(std::span<const std::byte> bytes);

// Bytes of a number; bf16 is the upper half of a float32.
enum class NumberWidth : std::uint8_t { bf16 = 2, f32 = 4, f64 = 8 };
inline std::size_t bytes_of(NumberWidth width) {
  return static_cast<std::size_t>(width);
}
// As it lies in memory.
inline NumberWidth stored_width(const Arithmetic& arithmetic) {
  return arithmetic.storage() == Real::f64 ? NumberWidth::f64 : NumberWidth::f32;
}
// The least that holds every number of a cache of this precision, to the bit.
inline NumberWidth cache_width(const Arithmetic& arithmetic) {
  return arithmetic.bfloat16() ? NumberWidth::bf16 : stored_width(arithmetic);
}

void put_number(std::vector<std::byte>& out, std::uint64_t value);  // in 8 bytes
std::uint64_t whole_number_at(std::span<const std::byte> bytes);    // of the first 8
void put_bytes(std::vector<std::byte>& out, std::span<const std::uint8_t> bytes);

void put_numbers(std::vector<std::byte>& out, std::span<const double> numbers, NumberWidth width);
// As many as `numbers` has room for; `bytes` holds so many at least.
void get_numbers(std::span<const std::byte> bytes, NumberWidth width, std::span<double> numbers);

// A matrix of numbers as they lie in memory (stored_width), to the bit: upload() rounds as activations are, and states of
// recurrent layers are not.
Matrix matrix_of(Ops& ops, std::span<const std::byte> bytes, std::size_t rows, std::size_t columns);

}  // namespace assay
