#include "refimpl/handoff/row_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/system/error.h"

namespace assay {

RowAssembly::RowAssembly(std::size_t rows, std::size_t row_numbers, const HeadRange& own, std::size_t first)
    : rows_(rows),
      row_numbers_(row_numbers),
      first_(first),
      own_(own),
      numbers_(rows * row_numbers, std::numeric_limits<double>::quiet_NaN()),
      here_(rows * own.count, false) {}

void RowAssembly::take(const HandoffPart& part, std::uint64_t at) {
  const PartHeader& h = part.header;
  const std::string what = fmt::format("{} of layer {}", name(h.kind), h.layer);
  if (h.rows > rows_ || at > rows_ - h.rows)
    throw Error::input(fmt::format("{}: rows {} to {} of a text of {} tokens", what, at, at + h.rows, rows_));
  if (h.heads.of != own_.of || h.heads.count == 0 || h.heads.count > own_.of ||
      h.heads.first > own_.of - h.heads.count)
    throw Error::input(fmt::format("{}: {} heads from head {} on, of {}, where the layer has {}", what,
                                   h.heads.count, h.heads.first, h.heads.of, own_.of));
  const std::size_t head = row_numbers_ / own_.count;
  if (h.columns != h.heads.count * head)
    throw Error::input(fmt::format("{}: {} numbers a row, where {} heads have {}", what, h.columns,
                                   h.heads.count, h.heads.count * head));
  const std::vector<double> numbers = numbers_of(part);
  for (std::size_t r = 0; r < h.rows; ++r) {
    for (std::uint64_t i = 0; i < h.heads.count; ++i) {
      const std::uint64_t which = h.heads.first + i;
      if (which < own_.first || which - own_.first >= own_.count) continue;
      const double* from = numbers.data() + r * h.columns + i * head;
      double* to = numbers_.data() + (at + r) * row_numbers_ + (which - own_.first) * head;
      const std::size_t place = (at + r) * own_.count + which - own_.first;
      if (here_[place] && std::memcmp(from, to, head * sizeof(double)) != 0)
        throw Error::input(
            fmt::format("{}: head {} of token {} came twice, and not the same", what, which, at + r));
      std::copy_n(from, head, to);
      here_[place] = true;
    }
  }
}

std::optional<std::string> RowAssembly::missing() const {
  for (std::size_t place = first_ * own_.count; place < here_.size(); ++place)
    if (!here_[place])
      return fmt::format("head {} of token {}", own_.first + place % own_.count, place / own_.count);
  return std::nullopt;
}

}  // namespace assay
