// BLAKE3's constants, for the plain loops and for those of many lanes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::blake3 {

inline constexpr std::uint32_t kInitial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                              0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
inline constexpr std::uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8, kKeyedHash = 16;
inline constexpr std::size_t kBlockBytes = 64, kBlocks = 16, kChunkBytes = kBlockBytes * kBlocks;
inline constexpr std::size_t kMostLanes = 32;
// In each of seven rounds, which word of the message comes where: each line is the one before, permuted.
inline constexpr std::uint8_t kSchedule[7][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                                  {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
                                                  {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
                                                  {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
                                                  {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
                                                  {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
                                                  {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

// What one lane of a vector hashes: a chunk, or a parent of two chaining values.
struct LaneInput {
  const std::byte* at = nullptr;  // as many bytes of it may be read as the longest of the lanes has
  std::uint32_t bytes = 0;
  std::uint32_t first_flags = 0, last_flags = 0;  // of its first and its last block
  std::uint64_t counter = 0;
};

// The chaining values of eight inputs, of sixteen, of twice sixteen. Only where the processor has AVX2, or AVX-512F.
void hash_lanes_avx2(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                     std::uint32_t (*out)[8]);
void hash_lanes_avx512(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                       std::uint32_t (*out)[8]);
void hash_twice_avx512(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                       std::uint32_t (*out)[8]);

}  // namespace assay::blake3
