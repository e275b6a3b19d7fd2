// BLAKE3 (github.com/BLAKE3-team/BLAKE3-specs): a tree of chunks of 1 KiB, each hashed by itself.
//
//   Blake3 hash;  hash.update(bytes);  hash.finish();   // 32 bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

class Blake3 {
 public:
  using Words = std::array<std::uint32_t, 8>;

  Blake3();
  // Keyed hashing: a hash of its own for every key.
  explicit Blake3(const std::array<std::uint8_t, 32>& key);
  void update(std::span<const std::byte> bytes);
  std::array<std::uint8_t, 32> finish() const;

 private:
  static constexpr std::size_t kBlock = 64, kChunk = 1024;

  void add_whole_chunks(std::span<const std::byte> bytes);
  void push_chunk(Words chaining);

  Words key_;
  std::uint32_t flags_ = 0;
  std::vector<Words> stack_;  // whole subtrees to the left, the largest first
  std::uint64_t chunks_ = 0;  // in them
  std::array<std::byte, kChunk> chunk_{};
  std::size_t filled_ = 0;  // of the chunk; a whole one waits for another byte, since the last is the root's
};

}  // namespace assay
