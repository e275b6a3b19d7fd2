#include "kernels/compare/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TEST(HeatMap, ColoursGrowWithTheLogarithmAndTurnAtTheLimit) {
  const HeatScale scale = {.low = 1e-6, .limit = 1, .high = 1e4};
  EXPECT_EQ(heat_class(0, scale), "");
  EXPECT_EQ(heat_class(9e-7, scale), "");
  EXPECT_EQ(heat_class(1.5e-6, scale), "b1");
  EXPECT_EQ(heat_class(1.5e-3, scale), "b4");
  EXPECT_EQ(heat_class(1, scale), "b6");
  EXPECT_EQ(heat_class(1.01, scale), "r1");
  EXPECT_EQ(heat_class(-150, scale), "r3");
  EXPECT_EQ(heat_class(1e9, scale), "r4");
  EXPECT_EQ(heat_class(INFINITY, scale), "r4");
  EXPECT_EQ(heat_class(std::nan(""), scale), "r4");
}

TEST(HeatMap, WithoutALimitNothingIsRedButWhatIsNoNumber) {
  const HeatScale scale = {.low = 1e-8, .high = 1};
  EXPECT_EQ(heat_class(1e3, scale), "b6");
  EXPECT_EQ(heat_class(INFINITY, scale), "r4");
}

TEST(HeatMap, NamesAreEscapedAndEmptyCellsStayEmpty) {
  const HeatMap map = {.corner = "<layer>",
                       .columns = {"a\"b", "c"},
                       .rows = {{"0 & 1", {{0.5, "0.5", "<script>"}, {}}}},
                       .scale = {}};
  const std::string page = heat_map(map);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;layer&gt;"), std::string::npos);
  EXPECT_NE(page.find("title=\"&lt;script&gt;\">0.5</td><td></td>"), std::string::npos);
}

}  // namespace
}  // namespace assay
