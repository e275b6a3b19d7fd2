// GGUF v2 and v3: reading and validating headers (ggml docs/gguf.md; loader rules of ggml/src/gguf.cpp).
//
//   "GGUF" | u32 version | i64 n_tensors | i64 n_kv | key/values | tensor infos | padding | data
//
// Every length, count, product and padded sum is checked before it is used; memory never exceeds what the
// file's own bytes justify. Arrays stay in their encoded form and are read element by element.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay::gguf {

enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

// An array as it lies in the file: `count` elements of `type`; strings are u64 length + bytes each.
struct Array {
  ValueType type = ValueType::u8;
  std::uint64_t count = 0;
  std::string encoded;
  std::vector<std::string> strings() const;    // type must be string
  std::vector<std::int64_t> integers() const;  // any integer or boolean type that fits
  std::vector<double> numbers() const;         // any number type
};

using Value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, Array>;

struct KeyValue {
  std::string key;
  ValueType type;
  Value value;
};

struct Tensor {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> ne;  // ggml's order: ne[0] is the contiguous (innermost) dimension
  std::uint64_t offset = 0;       // relative to the data section
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> shape() const { return {ne.rbegin(), ne.rend()}; }  // as safetensors writes it
};

struct Header {
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::vector<KeyValue> metadata;
  std::vector<Tensor> tensors;
  std::uint64_t data_offset = 0;  // of the data section in the file
  std::uint64_t file_bytes = 0;
  Findings deviations;  // spec violations that the loader accepts, and notes

  const KeyValue* find(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::uint64_t> number(std::string_view key) const;  // any non-negative integer
};

// Throws Error::input naming key or tensor and byte offset for everything the reference loader refuses.
Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source);
// Reads in growing pieces: a header is some MB (vocabularies), the file may be hundreds of GB.
Header read_header(const File& file);

}  // namespace assay::gguf
