// The ways this machine can run SHA-256's compression function, one message at a time or several side by
// side.
//
// A kernel hashes whole 64-byte blocks of `lanes` unrelated messages; padding and partial blocks are the
// caller's. A lane's chaining words mean the same to every kernel, so a message may change kernels between
// two blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace assay::sha256 {

inline constexpr std::size_t kBlock = 64;
inline constexpr int kMaxLanes = 16;
// By how many bytes the buffers of lanes are out of step, so that equal offsets fall into different cache sets.
inline constexpr std::size_t kStagger = 9 * kBlock;

using State = std::array<std::uint32_t, 8>;
inline constexpr State kInitialState = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

struct Kernel {
  std::string_view name;
  int lanes;
  double typical_rate;  // GB/s of all lanes together on a server core of 2023; used until measured
  void (*compress)(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks);
};

// Those this CPU can run. The first is OpenSSL's, one lane, present on every machine.
std::span<const Kernel> kernels();

// Runs `kernel` on up to kernel.lanes messages; the lanes left over compute on a copy and are thrown away.
void compress(const Kernel& kernel, std::span<State* const> states, std::span<const std::byte* const> data,
              std::size_t blocks);

// Ends a message of `length` bytes whose last length % 64 are in `tail`: FIPS 180-4, section 5.1.1.
std::array<std::uint8_t, 32> finish(State state, std::span<const std::byte> tail, std::uint64_t length);

}  // namespace assay::sha256
