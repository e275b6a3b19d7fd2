#include "core/model/scale_cut.h"

#include <numeric>

namespace assay {

ScaleCut cut_scales(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size) {
  ScaleCut cut;
  cut.block = block;
  if (ranges.empty()) return cut;
  const std::uint64_t first = ranges.front().begin / block, end = ranges.back().end;
  if (end <= (first + 1) * block) {
    cut.from = {first};
    return cut;
  }
  for (const IndexRange& range : ranges) {
    cut.block = std::gcd(cut.block, range.begin);
    if (range.end != size) cut.block = std::gcd(cut.block, range.end);
  }
  for (const IndexRange& range : ranges)
    for (std::uint64_t at = range.begin; at < range.end; at += cut.block) cut.from.push_back(at / block);
  return cut;
}

}  // namespace assay
