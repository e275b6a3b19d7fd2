// A string as two numbers: themselves where it is short, a hash of it where it is long.
//
// Up to 16 bytes: the first 8 and the last 8 of them, or the first 4 and the last 4, or the first, the middle and the
// last; with the length they are the string. Most words of most texts are compared so, without a look at their bytes.
// Hashes are seeded anew in every process: no file knows which strings fall together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay {

struct StringKey {
  static constexpr std::size_t kWhole = 16;
  static constexpr std::uint32_t kNone = ~0u;

  std::uint64_t first = 0;       // of a long string: its hash
  std::uint64_t second = 0;      // of a long string: whatever a table finds it by
  std::uint32_t length = kNone;  // kNone: no string

  bool whole() const { return length <= kWhole; }
};

class StringSeed {
 public:
  StringSeed() : seed_(of_this_process()) {}

  StringKey key(std::string_view text) const {
    const char* const begin = text.data();
    const std::size_t size = text.size();
    const auto length = static_cast<std::uint32_t>(size);
    if (size > StringKey::kWhole) return {hash_of(text), 0, length};
    if (size >= 8) return {load<std::uint64_t>(begin), load<std::uint64_t>(begin + size - 8), length};
    if (size >= 4) return {load<std::uint32_t>(begin), load<std::uint32_t>(begin + size - 4), length};
    if (size == 0) return {0, 0, 0};
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(begin[i])}; };
    return {byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16, 0, length};
  }

  std::size_t hash(const StringKey& key) const {
    return static_cast<std::size_t>(mixed(key.first, key.whole() ? key.second : 0, key.length));
  }

 private:
  static std::uint64_t of_this_process();

  template <class Word>
  static Word load(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  // Two rounds of multiplying by an odd constant (the golden ratio's, Murmur's) and folding the upper half down.
  std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    std::uint64_t h = (a ^ seed_) * 0x9E3779B97F4A7C15ull;
    h = ((h ^ h >> 32) + b + c * seed_) * 0xFF51AFD7ED558CCDull;
    return h ^ h >> 32;
  }
  std::uint64_t hash_of(std::string_view text) const {
    std::uint64_t h = text.size();
    for (; text.size() > 8; text.remove_prefix(8)) h = mixed(load<std::uint64_t>(text.data()), h, 1);
    std::uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    return mixed(rest, h, 2);
  }

  std::uint64_t seed_;
};

}  // namespace assay
