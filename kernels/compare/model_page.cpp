// The page of `compare model`: verdict, figures, heat maps of layer by tap and of layer by metric.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/system/html_page.h"
#include "kernels/compare/heat_map.h"
#include "kernels/compare/model.h"

namespace assay {
namespace {

std::string power_of_ten(double value) {
  if (value == 0) return "0";
  return fmt::format("{:.0e}", value);
}

// Kinds of all layers by where they stand in a layer: a kind that only some layers have stands behind the one
// it follows there.
std::vector<std::string> ordered_kinds(const ModelComparison& r) {
  std::vector<std::string> order;
  for (std::size_t i = 0; i < r.taps.size(); ++i) {
    if (r.taps[i].place.empty() || std::find(order.begin(), order.end(), r.taps[i].kind) != order.end())
      continue;
    auto at = order.begin();
    if (i > 0 && r.taps[i - 1].place == r.taps[i].place) {
      at = std::find(order.begin(), order.end(), r.taps[i - 1].kind);
      if (at != order.end()) ++at;
    }
    order.insert(at, r.taps[i].kind);
  }
  return order;
}

using CellOf = std::function<HeatCell(const TapReport&)>;

HeatMap by_tap(const ModelComparison& r, const HeatScale& scale, const CellOf& cell_of) {
  HeatMap map = {.corner = "layer", .columns = ordered_kinds(r), .rows = {}, .scale = scale};
  std::string open;
  for (const TapReport& tap : r.taps) {
    if (tap.place.empty()) continue;
    if (open != tap.place) map.rows.push_back({tap.place, std::vector<HeatCell>(map.columns.size())});
    open = tap.place;
    const auto column = std::find(map.columns.begin(), map.columns.end(), tap.kind) - map.columns.begin();
    map.rows.back().cells[static_cast<std::size_t>(column)] = cell_of(tap);
  }
  return map;
}

std::string about(const TapReport& tap) {
  const ErrorTotals all = tap.free.all();
  return fmt::format(
      "{}\nof allowed {:.3g}\nlocal error {:.2e} (plain computation {:.2e})\nerror so far {:.2e}\nmax abs "
      "{:.2e}, 1-cos {:.1e}",
      tap.name, tap.ratio, tap.local.all().relative(), tap.plain_prefill(), all.relative(), all.max_abs,
      all.one_minus_cosine());
}

HeatCell ratio_cell(const TapReport& tap) {
  return {tap.ratio, tap.ratio >= 100 ? power_of_ten(tap.ratio) : fmt::format("{:.2f}", tap.ratio),
          about(tap)};
}

HeatCell free_cell(const TapReport& tap) {
  const double error = tap.free.all().relative();
  return {error, power_of_ten(error), about(tap)};
}

// From the smallest error to the largest.
HeatScale free_scale(const ModelComparison& r) {
  HeatScale scale = {.low = 1, .limit = std::numeric_limits<double>::infinity(), .high = 0};
  for (const TapReport& tap : r.taps) {
    const double error = tap.free.all().relative();
    if (error > 0) scale.low = std::min(scale.low, error);
    if (std::isfinite(error)) scale.high = std::max(scale.high, error);
  }
  scale.high = std::max(scale.high, 2 * scale.low);
  return scale;
}

// What has gathered at the end of each layer, in every metric.
HeatMap by_metric(const ModelComparison& r) {
  HeatMap map = {.corner = "after layer",
                 .columns = {"rel. Frobenius", "max abs", "NMSE", "1 - cos", "worst token", "> 16 ulp"},
                 .rows = {},
                 .scale = {.low = 1e-14, .limit = std::numeric_limits<double>::infinity(), .high = 1}};
  for (std::size_t i = 0; i < r.taps.size(); ++i) {
    const std::string& place = r.taps[i].place;
    const bool last = i + 1 == r.taps.size() || place.empty() || r.taps[i + 1].place != place;
    if (!last) continue;
    const ErrorTotals e = r.taps[i].free.all();
    HeatRow row = {place.empty() ? r.taps[i].name : place, {}};
    for (const double value :
         {e.relative(), e.max_abs, e.nmse(), e.one_minus_cosine(), e.worst_row_error, e.beyond_16_ulps()})
      row.cells.push_back({value, power_of_ten(value), r.taps[i].name});
    map.rows.push_back(std::move(row));
  }
  return map;
}

std::string tiles(const ModelComparison& r) {
  std::string out = "<div class=\"tiles\">\n";
  out += html::tile(fmt::format("{:.2f}", r.largest_ratio()), "largest local error, of what is allowed");
  out += html::tile(r.first_divergence ? html::escape(r.taps[*r.first_divergence].name) : "none",
                    "first divergence");
  out += html::tile(fmt::format("{:.2e}", r.logits.kl_mean), "nats of KL a token");
  out += html::tile(fmt::format("{:.4g}%", 100 * r.logits.same_first), "same first choice");
  out += html::tile(fmt::format("{:.4g}%", 100 * r.logits.top5_overlap), "of the first five shared");
  out += html::tile(fmt::format("{:+.2e} ± {:.0e}", r.logits.loss_difference, r.logits.standard_error),
                    "loss of the text, nats a token, test less reference");
  out += html::tile(r.greedy.parts_at ? fmt::format("{} of {}", *r.greedy.parts_at, r.greedy.reference.size())
                                      : fmt::format("never in {}", r.greedy.reference.size()),
                    "where greedy texts part");
  out += html::tile(r.probe_inert ? "inert" : "NOT INERT", "the probe: logits with and without it");
  return out + "</div>\n";
}

}  // namespace

std::string to_page(const ModelComparison& r, const ModelCompareTitle& title) {
  std::string page = html::head({.title = "assay compare model", .style = kHeatMapStyle}) + "<main>\n";
  page += fmt::format("<h1>{}</h1>\n<p class=\"soft\">against {}</p>\n<p class=\"soft\">{}</p>\n",
                      html::escape(title.test), html::escape(title.reference), html::escape(title.text));
  const char* colour = r.status == CaseStatus::passed       ? "good"
                       : r.status == CaseStatus::mistrusted ? "warn"
                                                            : "bad";
  page += fmt::format("<p class=\"verdict {}\">{}</p>\n", colour, html::escape(verdict_line(r)));
  if (r.taps.empty()) return page + "</main>\n" + std::string(html::kEnd);
  page += tiles(r);
  page +=
      "<h2>Local error, of what the plain computation explains</h2>\n<p class=\"soft\">Each tap computed "
      "from "
      "the reference's own numbers at the taps before it; above 1 in red. Hover for figures.</p>\n";
  page += heat_map(by_tap(r, {.low = 1e-3, .limit = 1, .high = 1e4}, ratio_cell));
  page +=
      "<h2>Error that has gathered</h2>\n<p class=\"soft\">‖test − reference‖ / ‖reference‖ of the free "
      "run.</p>\n";
  page += heat_map(by_tap(r, free_scale(r), free_cell));
  page += "<h2>Layer by metric</h2>\n" + heat_map(by_metric(r));
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
