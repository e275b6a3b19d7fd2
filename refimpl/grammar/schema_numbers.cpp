// Bounds of numbers as grammars of their digits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/grammar/schema_parts.h"

namespace assay::grammar {
namespace {

// Where a side has no bound, numbers end here.
constexpr double kMostInteger = 1e15, kMostNumber = 1e9;
constexpr double kLargestBound = 9007199254740992;  // beyond, a double is not the number that was written
constexpr double kLargest = 9e18;
constexpr std::size_t kExactDigits = 15;  // numbers of so many digits stay apart as doubles

std::string any_digits(std::size_t count) {
  if (count == 0) return "";
  return count == 1 ? " [0-9]" : fmt::format(" [0-9]{{{}}}", count);
}

std::string one_digit(char first, char last) {
  return first == last ? fmt::format("\"{}\"", first) : fmt::format("[{}-{}]", first, last);
}

bool all_are(std::string_view digits, char c) {
  return digits.find_first_not_of(c) == std::string_view::npos;
}

// Numbers of one length, from a to b: alternatives, by their first digit.
std::string of_one_length(std::string_view a, std::string_view b) {
  if (a.empty()) return "";
  if (all_are(a.substr(1), '0') && all_are(b.substr(1), '9'))
    return one_digit(a[0], b[0]) + any_digits(a.size() - 1);
  const std::size_t rest = a.size() - 1;
  if (a[0] == b[0])
    return fmt::format("{} ( {} )", one_digit(a[0], a[0]), of_one_length(a.substr(1), b.substr(1)));
  std::vector<std::string> ways;
  char first = a[0], last = b[0];
  if (!all_are(a.substr(1), '0')) {
    ways.push_back(fmt::format("\"{}\" ( {} )", first, of_one_length(a.substr(1), std::string(rest, '9'))));
    ++first;
  }
  std::string high;
  if (!all_are(b.substr(1), '9')) {
    high = fmt::format("\"{}\" ( {} )", last, of_one_length(std::string(rest, '0'), b.substr(1)));
    --last;
  }
  if (first <= last) ways.push_back(one_digit(first, last) + any_digits(rest));
  if (!high.empty()) ways.push_back(std::move(high));
  return fmt::format("{}", fmt::join(ways, " | "));
}

// What lies at or above zero: from `least` (itself out if `open`) to `most`, both whole.
struct Side {
  double least = 0, most = 0;
  bool least_open = false, most_open = false;
};

std::optional<std::string> whole_numbers(Side side) {
  if (side.least_open) side.least += 1;
  if (side.most_open) side.most -= 1;
  if (side.most < side.least) return std::nullopt;
  return gbnf_digits_between(static_cast<std::uint64_t>(side.least), static_cast<std::uint64_t>(side.most));
}

// n or n.d for least < n < most; at the ends what is still inside. So few decimals that none is rounded to a bound.
std::optional<std::string> decimal_numbers(const Side& side) {
  const std::size_t digits = fmt::format("{:.0f}", side.most).size();
  if (digits >= kExactDigits) return whole_numbers(side);
  const std::size_t decimals = kExactDigits - digits;
  std::vector<std::string> ways;
  const double first = side.least + (side.least_open ? 1 : 0), last = side.most - 1;
  if (side.least_open && side.least < side.most)
    ways.push_back(fmt::format("\"{:.0f}.\" [0-9]{{0,{}}} [1-9]", side.least, decimals - 1));
  if (first <= last)
    ways.push_back(fmt::format(
        "( {} ) ( \".\" [0-9]{{1,{}}} )?",
        gbnf_digits_between(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last)), decimals));
  if (!side.most_open && side.most >= first)
    ways.push_back(fmt::format("\"{:.0f}\" ( \".\" \"0\"{{1,{}}} )?", side.most, decimals));
  if (ways.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(ways, " | "));
}

// The tighter of two bounds on one end, made whole: what lies between two whole numbers is given up.
struct End {
  double at = 0;
  bool open = false;
};

End lower_end(const NumberBounds& b, double without) {
  End end = {b.least || b.above ? -std::numeric_limits<double>::infinity() : -without, true};
  if (b.least && std::ceil(*b.least) > end.at) end = {std::ceil(*b.least), false};
  if (b.above && std::ceil(*b.above) >= end.at) end = {std::ceil(*b.above), std::ceil(*b.above) == *b.above};
  return end;
}

template <class Numbers>
std::optional<std::string> both_sides(const NumberBounds& b, double without, Numbers numbers) {
  for (const auto& bound : {b.least, b.most, b.above, b.below})
    if (bound && !(std::abs(*bound) <= kLargestBound)) return std::nullopt;
  const auto negative = [](const std::optional<double>& x) { return x ? std::optional(-*x) : std::nullopt; };
  const End low = lower_end(b, without);
  End high = lower_end({negative(b.most), {}, negative(b.below), {}}, without);
  high.at = -high.at;
  End low_end = low, high_end = high;
  if (low.at >= without && !b.most && !b.below) high_end = {kLargest, false};
  if (high.at <= -without && !b.least && !b.above) low_end = {-kLargest, false};
  std::vector<std::string> ways;
  const auto add = [&](const End& from, const End& to, std::string_view sign) {
    if (to.at < 0) return;
    const Side side = from.at < 0 ? Side{0, to.at, false, to.open} : Side{from.at, to.at, from.open, to.open};
    if (const auto some = numbers(side)) ways.push_back(fmt::format("{}( {} )", sign, *some));
  };
  add(low_end, high_end, "");
  // Below zero: the same, seen in a mirror. A zero that is whole has no sign.
  const End from = {-high_end.at, high_end.open}, to = {-low_end.at, low_end.open};
  if (to.at > 0) add(from.at < 0 ? End{0, true} : from.at == 0 ? End{0, true} : from, to, "\"-\" ");
  if (ways.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(ways, " | "));
}

}  // namespace

std::string gbnf_digits_between(std::uint64_t least, std::uint64_t most) {
  const std::string a = std::to_string(least), b = std::to_string(most);
  if (a.size() == b.size()) return of_one_length(a, b);
  std::vector<std::string> ways = {of_one_length(a, std::string(a.size(), '9'))};
  if (b.size() - a.size() > 1) ways.push_back(fmt::format("[1-9] [0-9]{{{},{}}}", a.size(), b.size() - 2));
  ways.push_back(of_one_length("1" + std::string(b.size() - 1, '0'), b));
  return fmt::format("{}", fmt::join(ways, " | "));
}

std::optional<std::string> gbnf_integers(const NumberBounds& bounds) {
  return both_sides(bounds, kMostInteger, whole_numbers);
}

std::optional<std::string> gbnf_numbers(const NumberBounds& bounds) {
  return both_sides(bounds, kMostNumber, decimal_numbers);
}

}  // namespace assay::grammar
