#include "core/formats/xet/gear.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/formats/xet/gear_kernels.h"
#include "core/formats/xet/gear_table.h"

namespace assay::xet {
namespace {

// Four places at once: each hash waits for the one before it, so that one alone leaves the processor idle.
constexpr std::size_t kPlainStreams = 4;

inline std::uint64_t next(std::uint64_t hash, std::byte byte) {
  return (hash << 1) + kGearTable[std::to_integer<std::size_t>(byte)];
}

std::uint64_t mark_plainly(std::uint64_t hash, std::span<const std::byte> bytes, std::uint64_t* marks) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 64 == 0) marks[i / 64] = 0;
    hash = next(hash, bytes[i]);
    if (hash < kCutsBelow) marks[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return hash;
}

void mark_four_plainly(const std::byte* at, std::size_t part, std::uint64_t* hashes, std::uint64_t* marks) {
  std::uint64_t h0 = hashes[0], h1 = hashes[1], h2 = hashes[2], h3 = hashes[3];
  for (std::size_t from = 0; from < part; from += 64) {
    const std::byte *const p0 = at + from, *const p1 = p0 + part, *const p2 = p1 + part,
                           *const p3 = p2 + part;
    std::uint64_t found[kPlainStreams] = {};
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 64; ++i) {
      h0 = next(h0, p0[i]);
      h1 = next(h1, p1[i]);
      h2 = next(h2, p2[i]);
      h3 = next(h3, p3[i]);
      if (h0 < kCutsBelow) [[unlikely]]
        found[0] |= std::uint64_t{1} << i;
      if (h1 < kCutsBelow) [[unlikely]]
        found[1] |= std::uint64_t{1} << i;
      if (h2 < kCutsBelow) [[unlikely]]
        found[2] |= std::uint64_t{1} << i;
      if (h3 < kCutsBelow) [[unlikely]]
        found[3] |= std::uint64_t{1} << i;
    }
    for (std::size_t stream = 0; stream < kPlainStreams; ++stream)
      marks[(stream * part + from) / 64] = found[stream];
  }
  hashes[0] = h0, hashes[1] = h1, hashes[2] = h2, hashes[3] = h3;
}

}  // namespace

std::uint64_t roll(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) hash = next(hash, byte);
  return hash;
}

std::optional<std::size_t> first_cut(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    hash = next(hash, bytes[i]);
    if (hash < kCutsBelow) return i + 1;
  }
  return std::nullopt;
}

const GearKernel& gear_kernel() {
  static const GearKernel kernel = gear_kernels().back();
  return kernel;
}

std::vector<GearKernel> gear_kernels() {
  std::vector<GearKernel> kernels{{kPlainStreams, mark_four_plainly}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi"))
    kernels.push_back({kMostStreams, mark_eight_avx512});
#endif
  return kernels;
}

std::uint64_t mark_cuts(std::uint64_t hash, std::span<const std::byte> bytes, std::uint64_t* marks,
                        const GearKernel& kernel) {
  const std::size_t part = bytes.size() / kernel.streams / 64 * 64;
  if (part == 0) return mark_plainly(hash, bytes, marks);
  // Each but the first begins with the bytes of its neighbour that it still remembers.
  std::array<std::uint64_t, kMostStreams> hashes{hash};
  for (std::size_t i = 1; i < kernel.streams; ++i)
    hashes[i] = roll(0, bytes.subspan(i * part - kGearWindow, kGearWindow));
  kernel.mark(bytes.data(), part, hashes.data(), marks);
  const std::size_t done = kernel.streams * part;
  return mark_plainly(hashes[kernel.streams - 1], bytes.subspan(done), marks + done / 64);
}

void CutEnds::add(std::size_t from, std::span<const std::uint64_t> marks) {
  for (std::size_t word = 0; word < marks.size(); ++word) {
    for (std::uint64_t bits = marks[word]; bits != 0; bits &= bits - 1)
      ends_.push_back(from + 64 * word + static_cast<std::size_t>(std::countr_zero(bits)) + 1);
  }
}

std::optional<std::size_t> CutEnds::first_in(std::size_t from, std::size_t to) const {
  const auto it = std::lower_bound(ends_.begin(), ends_.end(), from);
  return it != ends_.end() && *it <= to ? std::optional(*it) : std::nullopt;
}

void CutEnds::shift(std::size_t bytes) {
  ends_.erase(ends_.begin(), std::upper_bound(ends_.begin(), ends_.end(), bytes));
  for (std::size_t& end : ends_) end -= bytes;
}

}  // namespace assay::xet
