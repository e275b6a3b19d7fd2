#include "kernels/dumps/token_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::dumps {
namespace {

constexpr int kIdShift = 24;  // a symbol: token id above, position below

// Of each row of one dump, the row of the other; nullopt: none.
using Partners = std::vector<std::optional<std::size_t>>;

Partners partners(const RowMap& map, bool of_ref) {
  Partners of(of_ref ? map.ref_rows : map.test_rows);
  for (const auto& [r, t] : map.pairs) of[of_ref ? r : t] = of_ref ? t : r;
  return of;
}

bool is_masked(const TokenIds& ids, std::size_t row) {
  return !ids.masked.empty() && ids.masked[row];
}

// The first row without a partner that is no padding, among those before `end`.
std::optional<std::size_t> first_alone(const TokenIds& ids, const Partners& of, std::size_t end) {
  for (std::size_t i = 0; i < std::min(end, of.size()); ++i) {
    if (!of[i] && !is_masked(ids, i)) return i;
  }
  return std::nullopt;
}

std::string too_many(const TokenIds& ids, std::size_t row, std::string_view whose, std::string_view other) {
  return fmt::format("{} has token {} at {}, which {} lacks", whose, ids.ids[row], row, other);
}

// Where an alignment that covers the shorter dump may yet be of other inputs: a token of one dump alone that
// stands before others, or an order that is not the other's.
std::string suspicion(const TokenIds& ref, const TokenIds& test, const RowMap& map) {
  std::size_t ref_end = 0, test_end = 0;  // behind the last rows that have partners
  bool ordered = true;
  std::size_t turn = 0;
  for (const auto& [r, t] : map.pairs) {
    if (ordered && t < test_end) {
      ordered = false;
      turn = r;
    }
    ref_end = std::max<std::size_t>(ref_end, r + 1);
    test_end = std::max<std::size_t>(test_end, t + 1);
  }
  if (const auto row = first_alone(test, partners(map, false), test_end))
    return too_many(test, *row, "TEST", "REF");
  if (const auto row = first_alone(ref, partners(map, true), ref_end))
    return too_many(ref, *row, "REF", "TEST");
  if (!ordered) return fmt::format("the tokens come in another order from REF's token {} on", turn);
  return "";
}

// The first rows of REF and TEST that differ; all before them that have partners agree.
struct Parting {
  std::size_t ref = 0, test = 0;
};
Parting parting(const TokenIds& ref, const TokenIds& test, const RowMap& map) {
  const Partners of_ref = partners(map, true), of_test = partners(map, false);
  const std::size_t r = first_alone(ref, of_ref, ref.ids.size()).value_or(ref.ids.size());
  std::size_t t = 0;  // behind the partner of the row before
  for (std::size_t before = r; before-- > 0;) {
    if (!of_ref[before]) continue;
    t = *of_ref[before] + 1;
    break;
  }
  const std::size_t alone = first_alone(test, of_test, test.ids.size()).value_or(test.ids.size());
  return {r, r == 0 ? alone : std::min(t, test.ids.size())};
}

std::string describe(const Parting& at, const TokenIds& ref, const TokenIds& test) {
  if (at.ref >= ref.ids.size() || at.test >= test.ids.size()) return "the token ids do not agree";
  if (at.ref == at.test)
    return fmt::format("token {} is {} in REF, {} in TEST", at.ref, ref.ids[at.ref], test.ids[at.test]);
  return fmt::format("REF's token {} is {}, TEST's token {}, which stands there, is {}", at.ref,
                     ref.ids[at.ref], at.test, test.ids[at.test]);
}

// No alignment covers the shorter dump: what stands before the first difference can be compared.
TokenAlignment other_inputs(const TokenIds& ref, const TokenIds& test) {
  TokenAlignment result;
  result.differ = true;
  const auto runs = align_partly(ref.symbols(false), test.symbols(false));
  if (!runs) {
    result.inputs = fmt::format("{} tokens of REF and {} of TEST cannot be aligned by token ids",
                                ref.ids.size(), test.ids.size());
  }
  RowMap map = runs.value_or(identity_map(0));
  map.identity = false;
  map.ref_rows = ref.ids.size();
  map.test_rows = test.ids.size();
  if (runs) {
    const Parting at = parting(ref, test, map);
    result.inputs = describe(at, ref, test);
    std::erase_if(map.pairs,
                  [&](const auto& pair) { return pair.first >= at.ref || pair.second >= at.test; });
  }
  result.note = map.pairs.empty() ? "nothing stands before that difference: no numbers are compared"
                                  : fmt::format("compared: the {} tokens before it", map.pairs.size());
  result.map = std::move(map);
  return result;
}

TokenAlignment covered(RowMap map, const TokenIds& ref, const TokenIds& test, std::string_view by) {
  TokenAlignment result;
  if (map.identity) return result;
  result.note = fmt::format("{}, by {}", map.said, by);
  result.inputs = suspicion(ref, test, map);
  result.map = std::move(map);
  return result;
}

}  // namespace

std::vector<std::uint64_t> TokenIds::symbols(bool with_positions) const {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::uint64_t>(ids[i]) << kIdShift;
    const auto position = with_positions ? static_cast<std::uint64_t>(positions[i]) : 0;
    all.push_back(!masked.empty() && masked[i] ? kMatchesNothing : id ^ position);
  }
  return all;
}

TokenAlignment align_ids(const TokenIds& ref, const TokenIds& test) {
  if (!ref.positions.empty() && !test.positions.empty()) {
    if (auto map = align(ref.symbols(true), test.symbols(true)))
      return covered(std::move(*map), ref, test, "token ids and positions");
  }
  if (auto map = align(ref.symbols(false), test.symbols(false))) {
    const RowMap rows = *map;
    TokenAlignment result = covered(std::move(*map), ref, test, "token ids");
    if (ref.positions.empty() || test.positions.empty() || !result.inputs.empty()) return result;
    const std::size_t all = rows.identity ? rows.ref_rows : rows.pairs.size();
    for (std::size_t k = 0; k < all; ++k) {
      const std::size_t r = rows.identity ? k : rows.pairs[k].first,
                        t = rows.identity ? k : rows.pairs[k].second;
      if (ref.positions[r] == test.positions[t]) continue;
      result.inputs = fmt::format("token {} stands at position {} in REF, {} in TEST", r, ref.positions[r],
                                  test.positions[t]);
      break;
    }
    return result;
  }
  return other_inputs(ref, test);
}

}  // namespace assay::dumps
