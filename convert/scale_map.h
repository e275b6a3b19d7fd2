// Which old scale a new block takes when only the blocks change.
//
// New block I covers rows [I·new, min((I+1)·new, rows)); the old blocks over the same rows are first(I) …
// last(I): one where the new block divides the old, several where blocks are merged. The same along columns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace assay {

struct ScaleMap {
  std::uint64_t size;      // rows, or columns, of the weight
  std::uint64_t from, to;  // sizes of the old and new blocks

  std::uint64_t old_count() const { return (size + from - 1) / from; }
  std::uint64_t new_count() const { return (size + to - 1) / to; }
  std::uint64_t first(std::uint64_t block) const { return block * to / from; }
  std::uint64_t last(std::uint64_t block) const { return (std::min((block + 1) * to, size) - 1) / from; }
  bool merges() const { return old_count() > 1 && to > from; }
};

}  // namespace assay
