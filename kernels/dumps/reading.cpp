#include "kernels/dumps/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::dumps {
namespace {

constexpr double kSameTokens = 0.5;    // relative distance up to which rows are taken to be the same tokens
constexpr std::size_t kNarrowest = 4;  // of vectors that tell tokens apart

template <class Key>
Key most_common(const std::map<Key, std::size_t>& votes) {
  const auto best = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == votes.end() ? Key{} : best->first;
}

const Tap* find_auxiliary(const Dump& dump, Auxiliary what) {
  for (const Tap& tap : dump.taps()) {
    if (auxiliary_of(tap.name) == what) return &tap;
  }
  return nullptr;
}

// One number a token, of a tensor of ids, positions or a mask, in whatever shape.
std::optional<std::vector<double>> auxiliary_values(const Dump& dump, Auxiliary what) {
  const Tap* tap = find_auxiliary(dump, what);
  if (tap == nullptr) return std::nullopt;
  const JoinPlan join = dump.joins(*tap).front();
  AxisPlan flat;
  for (std::size_t a = 0; a < join.steps.front().size(); ++a) flat.order.push_back(a);
  flat.row_axes = flat.order.size();
  return dump.load(*tap, join, flat).values;
}

// Not every dump's numbers are whole ones.
std::int64_t whole(double value) {
  return std::isfinite(value) && std::fabs(value) < 0x1p53 ? static_cast<std::int64_t>(value) : -1;
}

std::optional<TokenIds> token_ids(const Dump& dump) {
  const auto ids = auxiliary_values(dump, Auxiliary::token_ids);
  if (!ids || ids->empty()) return std::nullopt;
  TokenIds result;
  for (const double id : *ids) result.ids.push_back(whole(id));
  const auto positions = auxiliary_values(dump, Auxiliary::positions);
  if (positions && positions->size() == ids->size()) {
    for (const double position : *positions) result.positions.push_back(whole(position));
  }
  const auto mask = auxiliary_values(dump, Auxiliary::mask);
  if (mask && mask->size() == ids->size()) {
    for (const double kept : *mask) result.masked.push_back(kept == 0);
  }
  return result;
}

void strike_masked(const Dump& dump, std::vector<std::uint64_t>& symbols) {
  const auto mask = auxiliary_values(dump, Auxiliary::mask);
  if (!mask || mask->size() != symbols.size()) return;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if ((*mask)[i] == 0) symbols[i] = kMatchesNothing;
  }
}

TokenAlignment aligned(const std::vector<std::uint64_t>& ref, const std::vector<std::uint64_t>& test,
                       std::string_view by) {
  TokenAlignment result;
  result.map = align(ref, test);
  const std::string what = escape_for_terminal(by);
  if (result.map && result.map->identity) {
    result.map.reset();
  } else if (result.map) {
    result.note = fmt::format("{}, by {}", result.map->said, what);
  } else if (ref.size() != test.size()) {
    result.note =
        fmt::format("{} tokens of REF and {} of TEST cannot be aligned by {}", ref.size(), test.size(), what);
  } else {
    result.note = fmt::format("the tokens do not agree by {}: compared as they stand", what);
  }
  return result;
}

// None where the ranks' parts do not fit together: that is told of this tap, and ends nothing.
std::vector<Shape> plain_shapes(const Dump& dump, const Tap& tap) try {
  return dump.joins(tap).front().steps;
} catch (const Error&) {
  return {};
}

bool mostly_same(const Activations& ref, const Activations& test) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < ref.values.size(); ++i) {
    const double difference = test.values[i] - ref.values[i];
    error += difference * difference;
    size += ref.values[i] * ref.values[i];
  }
  return error <= kSameTokens * kSameTokens * size;
}

}  // namespace

std::uint64_t likely_tokens(const PairedDumps& dumps) {
  std::map<std::uint64_t, std::size_t> widths, votes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  // last axis; all others
  for (const TapPair& pair : dumps.pairs) {
    std::uint64_t rows = 0, width = 0;
    for (const Shape& shape : plain_shapes(dumps.ref, *pair.ref)) {
      if (shape.size() < 2) continue;
      width = shape.back();
      std::uint64_t of_step = 1;
      for (std::size_t a = 0; a + 1 < shape.size(); ++a) of_step *= shape[a];
      rows += of_step;
    }
    if (rows == 0) continue;
    ++widths[width];
    sizes.emplace_back(width, rows);
  }
  const std::uint64_t usual = most_common(widths);
  for (const auto& [width, rows] : sizes) {
    if (width == usual) ++votes[rows];
  }
  return most_common(votes);
}

std::optional<Reading> find_reading(const PairedDumps& dumps, const TapPair& pair) try {
  for (const JoinPlan& r : dumps.ref.joins(*pair.ref)) {
    for (const JoinPlan& t : dumps.test.joins(*pair.test)) {
      const auto axes = agree(r.steps, axis_plans(r.steps, pair.ref->layout), t.steps,
                              axis_plans(t.steps, pair.test->layout), dumps.tokens);
      if (axes) return Reading{r, t, axes->first, axes->second};
    }
  }
  return std::nullopt;
} catch (Error& error) {
  throw std::move(error).tensor(pair.ref->name);
}

Activations load_plainly(const Dump& dump, const Tap& tap) {
  const JoinPlan join = dump.joins(tap).front();
  return dump.load(tap, join, axis_plans(join.steps, tap.layout).front());
}

TokenAlignment align_tokens(const PairedDumps& dumps) {
  if (const auto ref = token_ids(dumps.ref)) {
    if (const auto test = token_ids(dumps.test)) return align_ids(*ref, *test);
  }
  for (const TapPair& pair : dumps.pairs) {
    if (!pair.ref->is_float() || !pair.test->is_float()) continue;
    if (plain_shapes(dumps.ref, *pair.ref).empty() || plain_shapes(dumps.test, *pair.test).empty()) continue;
    const auto how = find_reading(dumps, pair);
    if (!how) continue;
    const Extent r = *extent(how->ref_join.steps, how->ref_axes),
                 t = *extent(how->test_join.steps, how->test_axes);
    if (r.width < kNarrowest || (dumps.tokens != 0 && r.rows != dumps.tokens && t.rows != dumps.tokens))
      continue;
    const Activations ref = dumps.ref.load(*pair.ref, how->ref_join, how->ref_axes);
    const Activations test = dumps.test.load(*pair.test, how->test_join, how->test_axes);
    const bool masked = find_auxiliary(dumps.ref, Auxiliary::mask) != nullptr ||
                        find_auxiliary(dumps.test, Auxiliary::mask) != nullptr;
    if (ref.rows == test.rows && !masked && mostly_same(ref, test)) return {};
    auto [a, b] = symbols_of(ref, test);
    strike_masked(dumps.ref, a);
    strike_masked(dumps.test, b);
    return aligned(a, b, pair.ref->name);
  }
  return {};
}

}  // namespace assay::dumps
