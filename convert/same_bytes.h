// Are tensors that are stored twice the same bytes? Both are read once, side by side: what is the same is hashed once, for
// both, several tensors at a time as suits the processor.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/progress.h"

namespace assay {

using ReadBytes = std::function<void(std::uint64_t at, std::span<std::byte> out)>;

struct StoredTwice {
  std::uint64_t bytes = 0;
  ReadBytes before, after;
  // Codes of a byte that are no finite number, beside their sign: from this on (E4M3 0x7F, E5M2 0x7C); 0x80: there are none.
  std::uint8_t first_non_finite = 0x80;
};

struct ReadTwice {
  Digest before, after;  // SHA-256; equal where the bytes are, and there alone
  bool finite = true;    // no code was met that is no finite number
};

// In the order of `pairs`. Throws Interrupted when asked to stop.
std::vector<ReadTwice> read_twice(std::span<const StoredTwice> pairs, int jobs, Progress& progress);

}  // namespace assay
