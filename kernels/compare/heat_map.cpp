#include "kernels/compare/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"

namespace assay {
namespace {

constexpr int kBlues = 6, kReds = 4;

// 1 … steps, by where log(value) lies between log(from) and log(to).
int step_of(double value, double from, double to, int steps) {
  const double place = std::log(value / from) / std::log(to / from);
  return std::clamp(1 + static_cast<int>(std::floor(place * steps)), 1, steps);
}

std::string cell(const HeatCell& c, const HeatScale& scale) {
  if (c.text.empty()) return "<td></td>";
  return fmt::format("<td class=\"{}\" title=\"{}\">{}</td>", heat_class(c.value, scale),
                     html::escape(c.title), html::escape(c.text));
}

}  // namespace

const std::string_view kHeatMapStyle = R"css(.heat { max-height: 85vh; overflow: auto; }
.heat table { width: auto; border-collapse: separate; border-spacing: 1px; font-size: 11.5px; }
.heat th, .heat td { border: 0; padding: 2px 5px; white-space: nowrap; font-variant-numeric: tabular-nums; }
.heat td { text-align: right; min-width: 3.4em; border-radius: 2px; }
.heat thead th { position: sticky; top: 0; z-index: 1; background: var(--card); vertical-align: bottom; }
.heat thead th.turned { padding: 4px 2px; text-align: right; }
.heat thead th.turned span { writing-mode: vertical-rl; transform: rotate(180deg); }
.heat tbody th { position: sticky; left: 0; background: var(--card); text-align: right; }
.b1 { background: rgb(66 120 220 / .10); } .b2 { background: rgb(66 120 220 / .20); }
.b3 { background: rgb(66 120 220 / .32); } .b4 { background: rgb(66 120 220 / .45); }
.b5 { background: rgb(66 120 220 / .58); } .b6 { background: rgb(66 120 220 / .72); }
.r1 { background: rgb(214 60 60 / .55); } .r2 { background: rgb(214 60 60 / .70); }
.r3 { background: rgb(214 60 60 / .85); } .r4 { background: rgb(224 40 40); color: #fff; font-weight: 600; }
.heat i { display: inline-block; width: 14px; height: 14px; border-radius: 2px; vertical-align: -2px; margin-right: 4px; }
)css";

std::string heat_class(double value, const HeatScale& scale) {
  if (!std::isfinite(value)) return fmt::format("r{}", kReds);
  const double size = std::fabs(value);
  if (size < scale.low) return "";
  if (size > scale.limit) {
    const double top = std::max(scale.high, scale.limit * 2);
    return fmt::format("r{}", step_of(size, scale.limit, top, kReds));
  }
  return fmt::format("b{}", step_of(size, scale.low, std::min(scale.limit, scale.high), kBlues));
}

std::string heat_map(const HeatMap& map) {
  std::string out =
      fmt::format("<div class=\"scroll heat\"><table>\n<thead><tr><th>{}</th>", html::escape(map.corner));
  for (const std::string& column : map.columns)
    out += fmt::format("<th class=\"turned\"><span>{}</span></th>", html::escape(column));
  out += "</tr></thead>\n<tbody>\n";
  for (const HeatRow& row : map.rows) {
    out += fmt::format("<tr><th>{}</th>", html::escape(row.label));
    for (const HeatCell& c : row.cells) out += cell(c, map.scale);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace assay
