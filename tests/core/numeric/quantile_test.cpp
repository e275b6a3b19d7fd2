#include "core/numeric/quantile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

// data/make_quantile_fixtures.py
TEST(Quantile, IsNumpysToTheBit) {
  const auto cases = nlohmann::json::parse(read_file(source_dir() / "data/fixtures/quantiles.json"));
  ASSERT_GT(cases.size(), 8U);
  for (const auto& one : cases) {
    const auto values = one["values"].get<std::vector<double>>();
    for (std::size_t i = 0; i < one["shares"].size(); ++i)
      EXPECT_EQ(linear_quantile(values, one["shares"][i].get<double>()), one["quantiles"][i].get<double>())
          << values.size() << " values, " << one["shares"][i];
  }
}

}  // namespace
}  // namespace assay::test
