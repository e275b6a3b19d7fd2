// A table whose cells are coloured by what stands in them: layers down, metrics or places across. Markup for
// a page of core/system/html_page.h; no script.
//
//   HeatMap map = {.corner = "layer", .columns = {"attn_out", "out"}, .scale = {.low = 0.01, .limit = 1}};
//   map.rows.push_back({"0", {{0.4, "0.40", "layers.0.attn_out"}, {}}});
//   page += heat_map(map);                  // once on the page: kHeatMapStyle among the rules of its head
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct HeatCell {
  double value = std::numeric_limits<double>::quiet_NaN();  // coloured by it
  std::string text;   // what stands in the cell; a cell without text is empty, whatever its value
  std::string title;  // shown on hovering
};
struct HeatRow {
  std::string label;
  std::vector<HeatCell> cells;  // as many as there are columns
};
// Logarithmic. Up to `limit` from pale to strong blue, beyond in red: what ought not to be. Zero and what
// lies below `low` is uncoloured; infinities and NaN are the strongest red.
struct HeatScale {
  double low = 1e-8;
  double limit = std::numeric_limits<double>::infinity();  // infinite: nothing is too much
  double high = 1;                                         // where the strongest colour begins
};
struct HeatMap {
  std::string corner;
  std::vector<std::string> columns;
  std::vector<HeatRow> rows;
  HeatScale scale;
};

extern const std::string_view kHeatMapStyle;
std::string heat_map(const HeatMap& map);
// The class that colours a value: "", "b1" … "b6" (blue), "r1" … "r4" (red).
std::string heat_class(double value, const HeatScale& scale);

}  // namespace assay
