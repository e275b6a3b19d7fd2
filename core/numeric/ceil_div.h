#pragma once

#include <cstdint>

namespace assay {

// How many groups of `size` hold `count` things, the last perhaps not full: ⌈count / size⌉, size > 0, of any
// counts (count + size - 1 would overflow near 2^64).
constexpr std::uint64_t ceil_div(std::uint64_t count, std::uint64_t size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace assay
