// Curves on a page: axes, a legend, points with their values where there are few. Goes with kPlotStyle and its colours in
// the page's head.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::html {

inline constexpr std::string_view kPlotStyle = R"css(
svg { width: 100%; height: auto; }
section.card { margin: 14px 0; }
.axis { stroke: var(--line); stroke-width: 1; }
.label { fill: var(--soft); font-size: 11px; }
.curve { fill: none; stroke-width: 2; stroke: var(--c); }
.point { fill: var(--c); }
.legend { display: flex; gap: 16px; flex-wrap: wrap; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: 12px; height: 3px; margin-right: 6px; vertical-align: middle; }
)css";
inline constexpr std::string_view kPlotLight = "--c0: #2f6fd0; --c1: #c2571a; --c2: #2c8a4b;";
inline constexpr std::string_view kPlotDark = "--c0: #7fb0ff; --c1: #ffab73; --c2: #7fd49b;";

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string x_label, y_label;
  double x_least = 0, x_most = 1, y_least = 0, y_most = 1;
  bool logarithmic = false;  // x
  bool y_powers = false;     // y are decimal logarithms, told as powers of ten
  std::vector<Curve> curves;
};

// Both are markup; texts within are escaped.
std::string draw(const Plot& plot);
std::string card(std::string_view title, const std::string& body);

}  // namespace assay::html
