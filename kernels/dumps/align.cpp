#include "kernels/dumps/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/system/text.h"

namespace assay::dumps {
namespace {

constexpr std::size_t kDirections = 24;
constexpr double kSameDirection = 0.01;                // |a - b|² of unit vectors: cosine 0.995
constexpr std::uint64_t kMostCells = 1ull << 28;       // of the table of runs, a pass
constexpr std::uint64_t kMostCellsOfAll = 1ull << 32;  // passes
constexpr std::size_t kMostRuns = 512, kFewestRuns = 16;

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

using Sketch = std::array<float, kDirections>;

// Rows as sums with random signs, of rows of length 1: distances are kept in the mean.
std::vector<std::optional<Sketch>> sketches(const Activations& of) {
  std::vector<std::optional<Sketch>> all(of.rows);
  for (std::size_t i = 0; i < of.rows; ++i) {
    const double* row = of.row(i);
    double norm = 0;
    for (std::size_t j = 0; j < of.width; ++j) norm += row[j] * row[j];
    if (!std::isfinite(norm) || norm == 0) continue;
    std::array<double, kDirections> sums{};
    for (std::size_t j = 0; j < of.width; ++j) {
      const std::uint64_t signs = mixed(j);
      for (std::size_t k = 0; k < kDirections; ++k) sums[k] += (signs >> k & 1) != 0 ? row[j] : -row[j];
    }
    Sketch& sketch = all[i].emplace();
    for (std::size_t k = 0; k < kDirections; ++k)
      sketch[k] = static_cast<float>(sums[k] / std::sqrt(norm * kDirections));
  }
  return all;
}

bool close(const Sketch& a, const Sketch& b) {
  double distance = 0;
  for (std::size_t k = 0; k < kDirections && distance < 2 * kSameDirection; ++k)
    distance += static_cast<double>(a[k] - b[k]) * (a[k] - b[k]);
  return distance < 2 * kSameDirection;  // twice: sums of 24 signs waver
}

struct Run {
  std::size_t ref = 0, test = 0, length = 0;
};

// The longest run of equal symbols among the rows that are still free; of several the one moved least.
Run longest_run(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test,
                const std::vector<bool>& ref_taken, const std::vector<bool>& test_taken) {
  const auto moved = [](const Run& run) {
    return run.ref > run.test ? run.ref - run.test : run.test - run.ref;
  };
  Run best;
  std::vector<std::uint32_t> above(test.size() + 1), here(test.size() + 1);
  for (std::size_t i = 0; i < ref.size(); ++i) {
    for (std::size_t j = 0; j < test.size(); ++j) {
      const bool equal = !ref_taken[i] && !test_taken[j] && ref[i] == test[j] && ref[i] != kMatchesNothing;
      here[j + 1] = equal ? above[j] + 1 : 0;
      const std::size_t length = here[j + 1];
      if (length == 0 || length < best.length) continue;
      const Run run = {i + 1 - length, j + 1 - length, length};
      if (length > best.length || moved(run) < moved(best)) best = run;
    }
    std::swap(above, here);
  }
  return best;
}

std::string describe(const RowMap& map, std::size_t runs) {
  std::string said =
      fmt::format("{} tokens of REF and {} of TEST aligned by content", map.ref_rows, map.test_rows);
  if (runs > 1) said += fmt::format(", in {} runs", runs);
  const bool ordered = std::is_sorted(map.pairs.begin(), map.pairs.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (!ordered) said += ", in another order";
  const std::size_t extra = map.test_rows - map.pairs.size(), absent = map.ref_rows - map.pairs.size();
  if (extra > 0) said += fmt::format("; {} of TEST left out (padding, other sequences)", extra);
  if (absent > 0) said += fmt::format("; {} of REF are not in TEST", absent);
  return said;
}

Activations picked(const RowMap& map, Activations of, bool ref) {
  if (map.identity) return of;
  Activations out;
  out.rows = map.pairs.size();
  out.width = of.width;
  out.type = of.type;
  out.values.reserve(out.rows * out.width);
  for (const auto& [r, t] : map.pairs) {
    const double* row = of.row(ref ? r : t);
    out.values.insert(out.values.end(), row, row + of.width);
  }
  return out;
}

// Rows that have a symbol.
std::size_t wanted(std::span<const std::uint64_t> symbols) {
  return symbols.size() -
         static_cast<std::size_t>(std::count(symbols.begin(), symbols.end(), kMatchesNothing));
}

bool same_run(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end()) &&
         std::find(a.begin(), a.end(), kMatchesNothing) == a.end();
}

RowMap empty_map(std::size_t ref_rows, std::size_t test_rows) {
  RowMap map;
  map.ref_rows = ref_rows;
  map.test_rows = test_rows;
  map.identity = false;
  return map;
}

void add_run(RowMap& map, const Run& run) {
  for (std::size_t k = 0; k < run.length; ++k) map.pairs.emplace_back(run.ref + k, run.test + k);
}

// The shorter is the beginning or the end of the longer: seen at once, however long they are.
std::optional<RowMap> prefix_or_suffix(std::span<const std::uint64_t> ref,
                                       std::span<const std::uint64_t> test) {
  const std::size_t shorter = std::min(ref.size(), test.size());
  RowMap map = empty_map(ref.size(), test.size());
  if (same_run(ref.first(shorter), test.first(shorter)))
    add_run(map, {0, 0, shorter});
  else if (same_run(ref.last(shorter), test.last(shorter)))
    add_run(map, {ref.size() - shorter, test.size() - shorter, shorter});
  else
    return std::nullopt;
  map.said = describe(map, 1);
  return map;
}

// The longest runs first, until `whole` rows have a partner or no run is left.
std::optional<RowMap> by_runs(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test,
                              std::size_t whole, std::size_t& runs) {
  if (ref.empty() || test.empty() || ref.size() > kMostCells / test.size()) return std::nullopt;
  RowMap map = empty_map(ref.size(), test.size());
  std::vector<bool> ref_taken(ref.size()), test_taken(test.size());
  const std::size_t most =
      std::clamp<std::size_t>(kMostCellsOfAll / (ref.size() * test.size()), kFewestRuns, kMostRuns);
  while (map.pairs.size() < whole && runs < most) {
    const Run run = longest_run(ref, test, ref_taken, test_taken);
    if (run.length == 0) break;
    ++runs;
    add_run(map, run);
    for (std::size_t k = 0; k < run.length; ++k) ref_taken[run.ref + k] = test_taken[run.test + k] = true;
  }
  std::sort(map.pairs.begin(), map.pairs.end());
  return map;
}

}  // namespace

RowMap identity_map(std::size_t rows) {
  RowMap map;
  map.ref_rows = map.test_rows = rows;
  return map;
}

std::optional<RowMap> align(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test) {
  if (ref.size() == test.size() && same_run(ref, test)) return identity_map(ref.size());
  const std::size_t whole = std::min(wanted(ref), wanted(test));
  if (whole == 0) return std::nullopt;
  if (auto map = prefix_or_suffix(ref, test)) return map;
  std::size_t runs = 0;
  auto map = by_runs(ref, test, whole, runs);
  if (!map || map->pairs.size() < whole) return std::nullopt;
  map->said = describe(*map, runs);
  return map;
}

std::optional<RowMap> align_partly(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test) {
  std::size_t runs = 0;
  return by_runs(ref, test, std::min(ref.size(), test.size()), runs);
}

std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> symbols_of(const Activations& ref,
                                                                             const Activations& test) {
  std::vector<Sketch> known;
  const auto name = [&](const Activations& of) {
    std::vector<std::uint64_t> symbols(of.rows, kMatchesNothing);
    const auto rows = sketches(of);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]) continue;
      const auto it =
          std::find_if(known.begin(), known.end(), [&](const Sketch& s) { return close(s, *rows[i]); });
      symbols[i] = static_cast<std::uint64_t>(it - known.begin());
      if (it == known.end()) known.push_back(*rows[i]);
    }
    return symbols;
  };
  auto first = name(ref);
  return {std::move(first), name(test)};
}

Activations pick_ref(const RowMap& map, Activations of) {
  return picked(map, std::move(of), true);
}
Activations pick_test(const RowMap& map, Activations of) {
  return picked(map, std::move(of), false);
}

}  // namespace assay::dumps
