#include "refimpl/handoff/state_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"

namespace assay {

StateAssembly::StateAssembly(StateCut cut, std::size_t number_bytes)
    : cut_(std::move(cut)),
      number_bytes_(number_bytes),
      bytes_(cut_.shape().rows * cut_.shape().columns * number_bytes),
      here_(cut_.here.size(), false) {}

void StateAssembly::take(const HandoffPart& part) {
  const PartHeader& h = part.header;
  const std::uint64_t rows = cut_.of_columns ? cut_.whole.rows : h.heads.count,
                      columns = cut_.of_columns ? h.heads.count : cut_.whole.columns;
  if (h.heads.of != cut_.length() || h.heads.count > h.heads.of ||
      h.heads.first > h.heads.of - h.heads.count || h.rows != rows || h.columns != columns ||
      h.number_bytes != number_bytes_)
    throw Error::input(fmt::format("the state of layer {} has another shape", h.layer));
  const std::uint64_t end = h.heads.first + h.heads.count;
  std::size_t place = 0;
  for (std::size_t i = 0; i < cut_.here.size(); ++i) {
    const StateUnit& unit = cut_.here[i];
    const std::size_t at = std::exchange(place, place + unit.count);
    if (unit.first + unit.count <= h.heads.first || unit.first >= end) continue;
    if (unit.first < h.heads.first || unit.first + unit.count > end)
      throw Error::input(fmt::format("the state of layer {} is cut within heads", h.layer));
    put(i, at, part);
    here_[i] = true;
  }
}

void StateAssembly::put(std::size_t which, std::size_t place, const HandoffPart& part) {
  const StateUnit& unit = cut_.here[which];
  const std::size_t index = cut_.step() * number_bytes_;
  const std::size_t line = bytes_.size() / std::max<std::size_t>(1, cut_.lines());
  const std::size_t part_line = part.header.heads.count * index, bytes = unit.count * index;
  for (std::size_t i = 0; i < cut_.lines(); ++i) {
    const auto from =
        part.bytes.begin() +
        static_cast<std::ptrdiff_t>(i * part_line + (unit.first - part.header.heads.first) * index);
    const auto to = bytes_.begin() + static_cast<std::ptrdiff_t>(i * line + place * index);
    const auto length = static_cast<std::ptrdiff_t>(bytes);
    if (here_[which] && !std::equal(from, from + length, to))
      throw Error::input(fmt::format("a state of layer {} came twice, and not the same", part.header.layer));
    std::copy(from, from + length, to);
  }
}

std::optional<std::string> StateAssembly::missing() const {
  for (std::size_t i = 0; i < here_.size(); ++i)
    if (!here_[i])
      return fmt::format("{} {} to {}", cut_.of_columns ? "channels" : "rows", cut_.here[i].first,
                         cut_.here[i].first + cut_.here[i].count);
  return std::nullopt;
}

}  // namespace assay
