// What fixtures of families told by a table keep of logits and taps (data/make_kin_goldens.py).
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay::test {

// What fixtures keep of a tap: its largest number and its sums under two rows of signs, so that no element may be off
// unnoticed.
inline std::vector<double> sketch(const std::vector<double>& values) {
  std::vector<double> of = {largest(values)};
  for (const char* row : {"signs 0", "signs 1"}) {
    const std::vector<double> numbers = made_numbers(row, values.size());
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += numbers[i] < 0 ? -values[i] : values[i];
    of.push_back(sum);
  }
  return of;
}
inline void expect_sketches(const std::map<std::string, std::vector<double>>& taps,
                            const std::vector<std::string>& names, const std::vector<double>& truths) {
  ASSERT_EQ(truths.size(), 3 * names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = taps.find(names[i]);
    ASSERT_NE(found, taps.end()) << names[i];
    const std::vector<double> ours = sketch(found->second);
    const double most = truths[3 * i], count = static_cast<double>(found->second.size());
    EXPECT_LE(std::abs(ours[0] - most), kOfDoubles * most) << names[i];
    for (const std::size_t row : {1, 2})
      EXPECT_LE(std::abs(ours[row] - truths[3 * i + row]), kOfDoubles * most * std::sqrt(count)) << names[i];
  }
}
// Of rows of so many columns, every third column.
inline std::vector<double> every_third(const std::vector<double>& rows, std::size_t columns) {
  std::vector<double> some;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % columns % 3 == 0) some.push_back(rows[i]);
  }
  return some;
}

}  // namespace assay::test
