// The ways of this machine to search for Xet's cuts: each takes a few parts of equal length at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::xet {

inline constexpr std::uint64_t kCutsBelow = std::uint64_t{1} << 48;  // the mask 0xFFFF000000000000
inline constexpr std::size_t kMostStreams = 8;

// Part i is the `part` bytes from at + i * part on, a multiple of 64; hashes[i] is the rolling hash before it, and
// becomes that after it. marks: as of mark_cuts().
struct GearKernel {
  std::size_t streams;
  void (*mark)(const std::byte* at, std::size_t part, std::uint64_t* hashes, std::uint64_t* marks);
};
const GearKernel& gear_kernel();         // the fastest of this processor
std::vector<GearKernel> gear_kernels();  // all of them, the fastest last

// Only where the processor has AVX-512 VBMI.
void mark_eight_avx512(const std::byte* at, std::size_t part, std::uint64_t* hashes, std::uint64_t* marks);

}  // namespace assay::xet
