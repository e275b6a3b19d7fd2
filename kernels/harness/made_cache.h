// A cache of keys or values made for a case: the rows of one sequence, in pages in no order or on end, with
// nothing but NaN in every place that belongs to no position.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/harness/cases.h"

namespace assay {

inline constexpr std::size_t kShorter =
    7;  // keys by which each sequence of a batch is shorter than the one before

class MadeCache {
 public:
  MadeCache() = default;
  // page_rows 0: rows lie on end.
  MadeCache(Filled rows, std::size_t page_rows, std::uint64_t seed);

  const double* row(std::size_t position) const { return &rows_.values[position * rows_.columns]; }
  std::size_t keys() const { return rows_.rows; }
  // In the memory of `ops`; the page table stays here.
  PagedKvView upload_to(Ops& ops) const;

 private:
  Filled rows_;
  std::size_t page_rows_ = 0, capacity_ = 0;  // rows of the whole cache
  std::vector<std::int32_t> pages_;
};

}  // namespace assay
