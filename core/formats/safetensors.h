// The safetensors container: reading, validating, writing.
//
//   u64 little-endian N | N bytes of JSON | byte buffer
//
// Two readings of a header. `strict` is the specification (README "Format"); `reference` is what the Rust
// reader, and so transformers, vLLM and SGLang, accept: duplicate keys with equal ranges, leading blanks,
// unknown fields, tensor descriptions as arrays, `"__metadata__": null`. Under `reference` such deviations
// are still reported, as warnings. Everything neither accepts is an Error that names file, tensor and offset.
// Notes (misaligned tensors, names that do not print) are added under both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay::safetensors {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // MAX_HEADER_SIZE of the reference

enum class Reading { strict, reference };

struct Tensor {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // relative to the byte buffer
  std::uint64_t bytes() const { return end - begin; }
};

struct Header {
  std::uint64_t json_bytes = 0;  // N
  std::uint64_t file_bytes = 0;
  std::vector<Tensor> tensors;  // by data offset, then name
  std::vector<std::pair<std::string, std::string>> metadata;
  Findings deviations;  // under `strict` notes only; `file` is left empty
  std::uint64_t buffer_offset() const { return 8 + json_bytes; }
};

// `prefix` holds at least the first 8+N bytes (all, of a shorter file) of a file of `file_bytes` bytes called
// `source`.
Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, Reading reading,
                    const fs::path& source);
// Reads 8 bytes, then N: no more memory than the header needs, whatever N claims.
Header read_header(const File& file, Reading reading);

// Lays out a header for `tensors` (name, type, shape; offsets are assigned here) in the order given, which is
// the order in the buffer. `align_buffer_to` pads the JSON with spaces (8 as the reference does; 4096 so that
// file systems can share extents). Throws Error::input on duplicate names and overflow.
std::string serialize_header(std::vector<Tensor>& tensors,
                             std::span<const std::pair<std::string, std::string>> metadata,
                             std::uint64_t align_buffer_to = 8);
// The order the reference writer uses: larger alignment first (element type descending), then name.
void sort_as_reference(std::vector<Tensor>& tensors);

}  // namespace assay::safetensors
