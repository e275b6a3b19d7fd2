// XXH64 with seed 0, which gguf-hash writes: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay {

class Xxh64 {
 public:
  void update(std::span<const std::byte> bytes);
  std::uint64_t finish() const;

 private:
  void take_stripe(const std::byte* stripe);

  std::array<std::uint64_t, 4> lanes_ = start();
  std::array<std::byte, 32> rest_{};  // of a stripe that is not yet whole
  std::size_t kept_ = 0;
  std::uint64_t length_ = 0;
  static std::array<std::uint64_t, 4> start();
};

}  // namespace assay
