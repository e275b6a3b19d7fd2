// Readers of data/fixtures/{codec,blocks}, and what several numeric tests share.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

inline std::string fixture(const std::string& path) {
  return read_file(test::source_dir() / "data/fixtures" / path);
}

inline std::vector<std::uint32_t> words(std::string_view bytes) {
  std::vector<std::uint32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

inline std::vector<std::uint32_t> codec_fixture(const std::string& name) {
  return words(fixture("codec/" + name + ".bin"));
}

inline std::uint32_t codec_table_crc(const std::string& name) {
  std::istringstream lines(fixture("codec/tables.txt"));
  for (std::string key, value; lines >> key >> value;) {
    if (key == name) return static_cast<std::uint32_t>(std::stoul(value, nullptr, 16));
  }
  throw std::runtime_error("no table " + name);
}

// zlib's CRC-32, over little-endian integers.
class Crc32 {
 public:
  template <class Integer>
  void add(Integer integer) {
    for (std::size_t i = 0; i < sizeof integer; ++i) {
      state_ ^= static_cast<std::uint8_t>(integer >> (8 * i));
      for (int bit = 0; bit < 8; ++bit) state_ = state_ >> 1 ^ (state_ % 2 != 0 ? 0xEDB88320u : 0u);
    }
  }
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = ~0u;
};

// patterns() of data/make_codec_fixtures.py.
inline std::vector<std::uint32_t> float_patterns() {
  std::vector<std::uint32_t> out;
  for (std::uint32_t high = 0; high < 65536; ++high) {
    for (const std::uint32_t low :
         {0u, 1u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x3001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      out.push_back(high << 16 | low);
    }
  }
  return out;
}

}  // namespace assay::test
