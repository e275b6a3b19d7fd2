// A range of code points is cut until every byte of its first and last member bounds that byte of all of them.
#include <algorithm>

#include "refimpl/grammar/automaton.h"
#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

void cut(std::uint32_t first, std::uint32_t last, std::vector<ByteRanges>& out) {
  for (const std::uint32_t longest : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (first <= longest && longest < last) {
      cut(first, longest, out);
      return cut(longest + 1, last, out);
    }
  }
  // At each byte but the last: where the leading bytes differ, all that follows must be whole.
  for (int shift = 6; shift <= 18 && last > 0x7F; shift += 6) {
    const std::uint32_t low = (std::uint32_t{1} << shift) - 1;
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) {
      cut(first, first | low, out);
      return cut((first | low) + 1, last, out);
    }
    if ((last & low) != low) {
      cut(first, (last & ~low) - 1, out);
      return cut(last & ~low, last, out);
    }
  }
  const std::string a = utf8_of(first), b = utf8_of(last);
  ByteRanges ranges;
  for (std::size_t i = 0; i < a.size(); ++i)
    ranges.emplace_back(static_cast<std::uint8_t>(a[i]), static_cast<std::uint8_t>(b[i]));
  out.push_back(std::move(ranges));
}

}  // namespace

std::vector<ByteRanges> utf8_ranges(const std::vector<CodeRange>& characters) {
  std::vector<ByteRanges> out;
  for (const CodeRange& range : tidy(characters)) cut(range.first, range.last, out);
  return out;
}

}  // namespace assay::grammar
