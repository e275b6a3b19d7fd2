#include "core/model/numbered_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>

namespace assay {
namespace {

constexpr char kNumber = '\xFF';  // in a stem; in no text that is UTF-8

bool begins_number(char c) {
  return c >= '0' && c <= '9';
}

// All of `text`, as it would be written: "7", not "07".
std::optional<std::uint32_t> number_in(std::string_view text) {
  if (text.empty() || !begins_number(text.front()) || (text.front() == '0' && text.size() > 1))
    return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

struct Range {
  std::uint32_t begin = 0, end = 0;
};
std::optional<Range> range_in(std::string_view part) {
  if (const auto number = number_in(part)) return Range{*number, *number};
  if (!part.starts_with('[') || !part.ends_with(']')) return std::nullopt;
  const std::size_t dash = part.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = number_in(part.substr(1, dash - 1)),
             end = number_in(part.substr(dash + 1, part.size() - dash - 2));
  if (!begin || !end || *begin >= *end) return std::nullopt;
  return Range{*begin, *end};
}

}  // namespace

void NumberedNames::split(std::string_view name, Parts& parts) {
  struct Found {
    std::size_t begin = 0, end = 0;
    Range range;
  };
  Found above, last;
  for (std::size_t begin = 0; begin < name.size();) {
    const void* const dot = std::memchr(name.data() + begin, '.', name.size() - begin);
    const std::size_t end =
        dot == nullptr ? name.size() : static_cast<std::size_t>(static_cast<const char*>(dot) - name.data());
    if (begins_number(name[begin]) || name[begin] == '[') {
      if (const auto range = range_in(name.substr(begin, end - begin))) {
        above = last.range.begin == last.range.end ? last : Found{};
        last = {begin, end, *range};
      }
    }
    begin = end + 1;
  }
  std::string& stem = parts.stem;
  stem.assign(name, 0, above.begin);
  if (above.end > 0) stem += kNumber;
  if (last.end > 0) (stem.append(name, above.end, last.begin - above.end)) += kNumber;
  stem.append(name, last.end);
  parts.run = {.above = above.range.begin, .begin = last.range.begin, .end = last.range.end};
}

void NumberedNames::add(std::string_view name, std::uint32_t value) {
  split(name, latest_);
  latest_.run.value = value;
  auto found = stems_.find(std::string_view(latest_.stem));
  if (found == stems_.end()) {
    found = stems_.emplace(latest_.stem, std::vector<Run>()).first;
    depths_ |= depth_bit(static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')));
  }
  found->second.push_back(latest_.run);
}

void NumberedNames::settle() {
  for (auto& [stem, runs] : stems_) settle(runs);
}

void NumberedNames::settle(std::vector<Run>& runs) {
  const auto before = [](const Run& a, const Run& b) { return a.before(b); };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::stable_sort(runs.begin(), runs.end(), before);
  std::size_t settled = 0;
  for (const Run& run : runs) {
    Run* const last = settled > 0 ? &runs[settled - 1] : nullptr;
    if (last != nullptr && !last->before(run))
      *last = run;
    else
      runs[settled++] = run;
  }
  runs.resize(settled);
  settled = 0;
  for (const Run& run : runs) {
    Run* const last = settled > 0 ? &runs[settled - 1] : nullptr;
    if (last != nullptr && last->above == run.above && last->value == run.value &&
        last->end + std::uint64_t{1} == run.begin)
      last->end = run.end;
    else
      runs[settled++] = run;
  }
  runs.resize(settled);
}

bool NumberedNames::contains(std::string_view name) const {
  if (stems_.empty()) return false;
  thread_local Parts parts;
  split(name, parts);
  const auto stem = stems_.find(std::string_view(parts.stem));
  if (stem == stems_.end()) return false;
  const auto behind = std::upper_bound(stem->second.begin(), stem->second.end(), parts.run,
                                       [](const Run& asked, const Run& run) { return asked.before(run); });
  if (behind == stem->second.begin()) return false;
  const Run& run = *std::prev(behind);
  return run.above == parts.run.above && parts.run.end <= run.end;
}

std::uint64_t NumberedNames::size() const {
  std::uint64_t names = 0;
  for (const auto& [stem, runs] : stems_)
    for (const Run& run : runs) names += std::uint64_t{run.end} - run.begin + 1;
  return names;
}

void NumberedNames::for_each(const std::function<void(const std::string&, std::uint32_t)>& visit) const {
  for (const auto& [stem, runs] : stems_) {
    const std::size_t last = stem.rfind(kNumber);
    const std::size_t above = last == 0 || last == std::string::npos ? last : stem.rfind(kNumber, last - 1);
    for (const Run& run : runs) {
      std::string name = stem;
      if (last != std::string::npos)
        name.replace(
            last, 1,
            run.begin == run.end ? std::to_string(run.begin) : fmt::format("[{}-{}]", run.begin, run.end));
      if (above != std::string::npos && above != last) name.replace(above, 1, std::to_string(run.above));
      visit(name, run.value);
    }
  }
}

}  // namespace assay
