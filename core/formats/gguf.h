// GGUF v2 and v3: reading and validating headers (ggml docs/gguf.md; loader rules of ggml/src/gguf.cpp).
//
//   "GGUF" | u32 version | i64 n_tensors | i64 n_kv | key/values | tensor infos | padding | data
//
// Every length, count, product and padded sum is checked before it is used; memory never exceeds what the
// file's own bytes justify. Arrays stay in their encoded form and are read element by element.
#pragma once

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

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint32_t kMaxDimensions = 4;              // GGML_MAX_DIMS
inline constexpr std::uint64_t kMaxNameBytes = 63;              // GGML_MAX_NAME less the NUL
inline constexpr std::uint64_t kMaxStringBytes = 1ull << 30;    // GGUF_MAX_STRING_LENGTH
inline constexpr std::uint64_t kMaxArrayElements = 1ull << 30;  // GGUF_MAX_ARRAY_ELEMENTS
// Ours, against header bombs: real headers have some 50 keys, 2,000 tensors and 20 MB of vocabulary.
inline constexpr std::uint64_t kMaxCount = 4'000'000;  // of keys, and of tensors
inline constexpr std::uint64_t kMaxHeaderBytes = 256ull << 20;

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

std::string_view name(ValueType type);      // "u32", as ggml abbreviates it
std::uint64_t value_bytes(ValueType type);  // of one value; 0 for strings and arrays, whose length varies

// The next multiple of `alignment`, a power of two; nullopt where that is beyond 64 bits.
std::optional<std::uint64_t> padded(std::uint64_t bytes, std::uint64_t alignment);

// An array as it lies in the file: `count` elements of `type`; strings are u64 length + bytes each.
struct Array {
  ValueType type = ValueType::u8;
  std::uint64_t count = 0;
  std::string encoded;
  std::vector<std::string> strings() const;  // type must be string
  // Any integer or boolean type; Error::input where one is beyond 2^63-1.
  std::vector<std::int64_t> integers() const;
  std::vector<double> numbers() const;  // any number type
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

// Metadata of a model cut into several files: this is part `number` (from 0) of `count`, of `tensors` in all.
struct Split {
  std::uint64_t number = 0, count = 0, tensors = 0;
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
  std::optional<Split> split() const;                               // nullopt: the model is one file
};

// Throws Error::input naming the file, key or tensor and byte offset for everything the reference loader
// refuses, but for names of 64 bytes and more: an error among the deviations, since builds with longer names
// exist.
Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source);
// Reads in growing pieces: a header is some MB (vocabularies), the file may be hundreds of GB.
Header read_header(const File& file);

}  // namespace assay::gguf
