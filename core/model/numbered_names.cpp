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

// A number at the beginning of `text`, as it would be written ("7", not "07"), which is cut off; false where there is none.
bool take_number(std::string_view& text, std::uint32_t& value) {
  if (text.empty() || !begins_number(text.front())) return false;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(read.ptr - text.data());
  if (read.ec != std::errc() || (digits > 1 && text.front() == '0')) return false;
  text.remove_prefix(digits);
  return true;
}

// All of `text`.
std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  if (!take_number(text, value) || !text.empty()) return std::nullopt;
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

std::vector<NumberedNames::Run> NumberedNames::apart(const std::vector<Run>& runs) {
  std::vector<Run> singles;
  for (const Run& run : runs)
    for (std::uint64_t number = run.begin; number <= run.end; ++number) {
      const auto single = static_cast<std::uint32_t>(number);
      singles.push_back({run.above, single, single, run.value});
    }
  return singles;
}

NumberedNames::Stem::Stem(std::string stem) : text(std::move(stem)) {
  for (std::size_t at = 0; count < 2 && (at = text.find(kNumber, at)) != std::string::npos; ++at)
    numbers[count++] = at;
}

bool NumberedNames::is_of(const Stem& stem, std::string_view name, Run& run) {
  const std::string_view text = stem.text;
  std::uint32_t numbers[2] = {0, 0};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < stem.count; begin = stem.numbers[i++] + 1) {
    const std::string_view before = text.substr(begin, stem.numbers[i] - begin);
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    if (!take_number(name, numbers[i])) return false;
  }
  if (name != text.substr(begin)) return false;
  run.above = stem.count == 2 ? numbers[0] : 0;
  run.begin = run.end = stem.count == 0 ? 0 : numbers[stem.count - 1];
  return true;
}

std::uint32_t NumberedNames::stem_of(std::string_view name) {
  if (!stems_.empty() && is_of(stems_[stems_[before_].follower], name, latest_.run))
    return stems_[before_].follower;
  split(name, latest_);
  const auto [place, is_new] = places_.try_emplace(latest_.stem, static_cast<std::uint32_t>(stems_.size()));
  if (is_new) {
    stems_.emplace_back(latest_.stem);
    depths_ |= depth_bit(static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')));
  }
  stems_[before_].follower = place->second;
  return place->second;
}

void NumberedNames::add(std::string_view name, std::uint32_t value) {
  before_ = stem_of(name);
  latest_.run.value = value;
  append(stems_[before_], latest_.run);
}

// Thousands of names in their order are one run from the first; in the order of their letters (1, 10, 100, 101, …, 11) a few.
void NumberedNames::append(Stem& stem, const Run& run) {
  std::vector<Run>& runs = stem.runs;
  if (stem.joins && run.begin != run.end) {
    stem.joins = false;
    runs = apart(runs);
  }
  if (stem.joins && !runs.empty() && run.is_next_of(runs.back()))
    runs.back().end = run.end;
  else
    runs.push_back(run);
}

std::vector<NumberedNames::Run> NumberedNames::in_order(std::vector<Run> runs) {
  const auto before = [](const Run& a, const Run& b) { return a.before(b); };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::stable_sort(runs.begin(), runs.end(), before);
  return runs;
}

// Of a name said twice the last counts: where one stands within a run, too, which is taken apart for that.
void NumberedNames::settle() {
  const auto meet = [](const Run& a, const Run& b) { return a.above == b.above && b.begin <= a.end; };
  for (Stem& stem : stems_) {
    std::vector<Run> runs = in_order(stem.runs);
    if (stem.joins && std::adjacent_find(runs.begin(), runs.end(), meet) != runs.end())
      runs = in_order(apart(stem.runs));
    settle(runs);
    stem.runs = std::move(runs);
  }
}

// Of runs in order.
void NumberedNames::settle(std::vector<Run>& runs) {
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
    if (last != nullptr && run.is_next_of(*last))
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
  const auto place = places_.find(std::string_view(parts.stem));
  if (place == places_.end()) return false;
  const std::vector<Run>& runs = stems_[place->second].runs;
  const auto behind = std::upper_bound(runs.begin(), runs.end(), parts.run,
                                       [](const Run& asked, const Run& run) { return asked.before(run); });
  if (behind == runs.begin()) return false;
  const Run& run = *std::prev(behind);
  return run.above == parts.run.above && parts.run.end <= run.end;
}

std::uint64_t NumberedNames::size() const {
  std::uint64_t names = 0;
  for (const Stem& stem : stems_)
    for (const Run& run : stem.runs) names += std::uint64_t{run.end} - run.begin + 1;
  return names;
}

void NumberedNames::for_each(const std::function<void(const std::string&, std::uint32_t)>& visit) const {
  for (const Stem& stem : stems_) {
    const std::size_t last = stem.text.rfind(kNumber);
    const std::size_t above =
        last == 0 || last == std::string::npos ? last : stem.text.rfind(kNumber, last - 1);
    for (const Run& run : stem.runs) {
      std::string name = stem.text;
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
