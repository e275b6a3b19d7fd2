// Where Xet may cut a file: after every byte at which a rolling hash of the last 64 begins with 16 zero bits.
//
//   h = 2 h + table[byte], modulo 2^64: what is 64 bytes back has been shifted out, so each place is judged
//   by the bytes before it alone, wherever the reading began. A file can be searched by many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/formats/xet/gear_kernels.h"

namespace assay::xet {

inline constexpr std::size_t kGearWindow = 64;

// Where chunks of a buffer may end: one more than each marked byte, in order.
class CutEnds {
 public:
  // Marks of bytes from `from` on, a bit each, beyond those that are known.
  void add(std::size_t from, std::span<const std::uint64_t> marks);
  std::optional<std::size_t> first_in(std::size_t from, std::size_t to) const;  // of [from, to]
  // The buffer's first bytes go, and what ended in them.
  void shift(std::size_t bytes);

 private:
  std::vector<std::size_t> ends_;
};

// Marks the cuts in `bytes`, of which `hash` is the rolling hash before them; gives that after them. The marks, one bit
// a byte, begin with the lowest bit of *marks, and what stood there is overwritten.
std::uint64_t mark_cuts(std::uint64_t hash, std::span<const std::byte> bytes, std::uint64_t* marks,
                        const GearKernel& kernel = gear_kernel());
// The rolling hash after `bytes`, from `hash` before them.
std::uint64_t roll(std::uint64_t hash, std::span<const std::byte> bytes);
// Of so many bytes from `hash` on: the end of the first cut.
std::optional<std::size_t> first_cut(std::uint64_t hash, std::span<const std::byte> bytes);

}  // namespace assay::xet
