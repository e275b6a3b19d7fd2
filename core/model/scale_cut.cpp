#include "core/model/scale_cut.h"

#include <numeric>

#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

bool lie_in_one_block(const std::vector<IndexRange>& ranges, std::uint64_t block) {
  return ranges.back().end <= (ranges.front().begin / block + 1) * block;
}

// The largest block whose multiples are all borders of blocks and of the part.
std::uint64_t refined_block(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size) {
  for (const IndexRange& range : ranges) {
    block = std::gcd(block, range.begin);
    if (range.end != size) block = std::gcd(block, range.end);
  }
  return block;
}

}  // namespace

ScaleCut cut_scales(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size) {
  ScaleCut cut;
  cut.block = block;
  if (ranges.empty()) return cut;
  if (lie_in_one_block(ranges, block)) {
    cut.from = {ranges.front().begin / block};
    return cut;
  }
  cut.block = refined_block(ranges, block, size);
  for (const IndexRange& range : ranges)
    for (std::uint64_t at = range.begin; at < range.end; at += cut.block) cut.from.push_back(at / block);
  return cut;
}

std::uint64_t count_scales(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size) {
  if (ranges.empty()) return 0;
  if (lie_in_one_block(ranges, block)) return 1;
  const std::uint64_t refined = refined_block(ranges, block, size);
  std::uint64_t count = 0;
  for (const IndexRange& range : ranges) count += ceil_div(range.size(), refined);
  return count;
}

}  // namespace assay
