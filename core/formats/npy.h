// NumPy's .npy: one array.
//
//   "\x93NUMPY" | version major, minor | u16 (1.0) or u32 (2.0, 3.0) little-endian N | N bytes of text | array
//
// The text is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Objects would
// be pickles, which run code: refused, as are records, text and dates. bfloat16 (ml_dtypes, JAX) is written
// as '<V2', two bytes without a type, and is read as BF16; the 8-bit floats come as '|V1' and cannot be told
// apart. Source: numpy.lib.format, "NPY format".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/element_type.h"
#include "core/system/file.h"

namespace assay::npy {

inline constexpr std::uint64_t kMaxHeaderBytes = 1 << 16;  // NumPy's own reader stops at 10,000

struct Header {
  ElementType type = ElementType::F32;
  bool big_endian = false;
  bool fortran_order = false;  // the first index runs fastest
  std::vector<std::uint64_t> shape;
  std::uint64_t data_offset = 0;
  std::uint64_t bytes = 0;  // of the array
};

// Bytes of the file's beginning that hold the header: `prefix` has at least kPrefixBytes, or the whole file.
inline constexpr std::uint64_t kPrefixBytes = 12;
std::uint64_t header_end(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source);
// `prefix` holds at least header_end() bytes of a file of `file_bytes` bytes called `source`.
Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source);
Header read_header(const File& file);

// The array's bytes as they were stored, made little-endian and last index fastest.
std::vector<std::byte> in_c_order(const Header& header, std::vector<std::byte> stored);

// Version 1.0, little-endian, C order, the array at a multiple of 64 bytes, as NumPy writes it.
std::string serialize_header(ElementType type, std::span<const std::uint64_t> shape);

}  // namespace assay::npy
