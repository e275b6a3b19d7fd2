#include <algorithm>

#include "refimpl/grammar/syntax.h"

namespace assay::grammar {
namespace {

constexpr std::uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF, kLastCodePoint = 0x10FFFF;

void add_clipped(std::vector<CodeRange>& out, CodeRange range, std::uint32_t first, std::uint32_t last) {
  range = {std::max(range.first, first), std::min(range.last, last)};
  if (range.first <= range.last) out.push_back(range);
}

}  // namespace

std::vector<CodeRange> tidy(const std::vector<CodeRange>& ranges) {
  std::vector<CodeRange> valid;
  for (const CodeRange& range : ranges) {
    add_clipped(valid, range, 0, kFirstSurrogate - 1);
    add_clipped(valid, range, kLastSurrogate + 1, kLastCodePoint);
  }
  std::sort(valid.begin(), valid.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  std::vector<CodeRange> joined;
  for (const CodeRange& range : valid) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

std::vector<CodeRange> complement(const std::vector<CodeRange>& tidied) {
  std::vector<CodeRange> out;
  std::uint32_t next = 0;
  for (const CodeRange& range : tidied) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) out.push_back({next, kLastCodePoint});
  return tidy(std::move(out));
}

}  // namespace assay::grammar
