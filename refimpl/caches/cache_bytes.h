// What a sequence's cache would need in an engine: numbers in full are of 2 bytes (BF16), whatever they are computed in
// here; codes, scales and sums as the method says. Without the states of recurrent layers, which do not grow.
#pragma once

#include <vector>

#include "refimpl/step/kv_cache.h"

namespace assay {

struct CacheBytes {
  double held = 0, full = 0;           // full: every row of every layer
  std::vector<std::size_t> rows = {};  // held, of each layer that has rows
};
CacheBytes cache_bytes(const SequenceCache& cache, const std::vector<CacheWidth>& widths);

}  // namespace assay
