// The page of `compare dumps`: verdict, figures, heat maps of layer by tap and of tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "kernels/compare/dumps.h"
#include "kernels/compare/heat_map.h"

namespace assay {
namespace {

using dumps::DumpComparison;
using dumps::TapResult;

constexpr std::size_t kTokensAcross = 32;
constexpr std::size_t kMostTokenRows = 512;

bool in_layer(const TapResult& tap) {
  return tap.key.stage == dumps::kLayerStage;
}

// Kinds in the order of a block.
std::vector<std::string> kinds_of(const DumpComparison& found) {
  std::vector<std::pair<int, std::string>> kinds;
  for (const TapResult& tap : found.taps) {
    std::pair<int, std::string> kind = {tap.key.position, dumps::kind_of(tap.name)};
    if (in_layer(tap) && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.push_back(std::move(kind));
  }
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> names;
  for (auto& [position, kind] : kinds) names.push_back(std::move(kind));
  return names;
}

std::string figure(double value) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return "inf";
  return value >= 0.01 && value < 100 ? fmt::format("{:.2f}", value) : fmt::format("{:.0e}", value);
}

std::string about(const TapResult& tap) {
  return fmt::format(
      "{}\n{}{}\nerror/limit {:.3g}, limit {:.2e}\nrel. Frobenius {:.2e}, max abs {:.2e}, 1-cos "
      "{:.1e}\n{:.3g}% of elements, {} of {} tokens over",
      tap.name, name(tap.status),
      tap.diagnosis ? fmt::format(": {}: {}", tap.diagnosis->code, tap.diagnosis->detail) : "",
      tap.error.ratio, tap.limit.element, tap.error.frobenius, tap.error.measure.max_abs,
      tap.error.measure.one_minus_cosine, 100 * tap.share_over(), tap.error.rows_over, tap.rows);
}

template <class ValueOf>
std::string layer_map(const DumpComparison& found, const HeatScale& scale, const ValueOf& value_of) {
  HeatMap map = {.corner = "layer", .columns = kinds_of(found), .rows = {}, .scale = scale};
  std::optional<std::uint64_t> open;
  for (const TapResult& tap : found.taps) {
    if (!in_layer(tap)) continue;
    if (open != tap.key.layer)
      map.rows.push_back({std::to_string(tap.key.layer), std::vector<HeatCell>(map.columns.size())});
    open = tap.key.layer;
    const auto column =
        std::find(map.columns.begin(), map.columns.end(), dumps::kind_of(tap.name)) - map.columns.begin();
    const double value = value_of(tap);
    map.rows.back().cells[static_cast<std::size_t>(column)] = {value, figure(value), about(tap)};
  }
  return map.rows.empty() ? std::string() : heat_map(map);
}

// Taps outside of layers, and every layer's last, in every metric.
std::string metric_map(const DumpComparison& found) {
  HeatMap map = {.corner = "tap",
                 .columns = {"error/limit", "rel. Frobenius", "max abs", "max rel", "NMSE", "1-cos",
                             "elements over", "tokens over"},
                 .rows = {},
                 .scale = {.low = 1e-12, .high = 1}};
  for (std::size_t i = 0; i < found.taps.size(); ++i) {
    const TapResult& tap = found.taps[i];
    const bool last = i + 1 == found.taps.size() || !in_layer(found.taps[i + 1]) ||
                      found.taps[i + 1].key.layer != tap.key.layer;
    if (in_layer(tap) && !last) continue;
    const ErrorMeasure& m = tap.error.measure;
    HeatRow row = {tap.name, {}};
    const double tokens =
        tap.rows == 0 ? 0 : static_cast<double>(tap.error.rows_over) / static_cast<double>(tap.rows);
    for (const double value : {tap.error.ratio, tap.error.frobenius, m.max_abs, m.max_rel, m.nmse,
                               m.one_minus_cosine, tap.share_over(), tokens})
      row.cells.push_back({value, figure(value), about(tap)});
    map.rows.push_back(std::move(row));
  }
  return heat_map(map);
}

std::string token_map(const DumpComparison& found) {
  HeatMap map = {
      .corner = "token", .columns = {}, .rows = {}, .scale = {.low = 1e-3, .limit = 1, .high = 1e4}};
  for (std::size_t i = 0; i < kTokensAcross; ++i) map.columns.push_back(fmt::format("+{}", i));
  for (std::size_t i = 0; i < found.token_heat.size() && map.rows.size() < kMostTokenRows; ++i) {
    if (i % kTokensAcross == 0) map.rows.push_back({std::to_string(i), {}});
    const double value = found.token_heat[i];
    map.rows.back().cells.push_back(
        {value, figure(value), fmt::format("token {}: {:.3g} of its limit", i, value)});
  }
  if (map.rows.empty()) return "";
  map.rows.back().cells.resize(kTokensAcross);
  return heat_map(map);
}

std::string faults(const DumpComparison& found) {
  std::string rows;
  for (const TapResult& tap : found.taps) {
    if (!tap.said_no()) continue;
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", html::escape(tap.name),
                        name(tap.status), tap.diagnosis ? html::escape(tap.diagnosis->code) : "",
                        tap.diagnosis ? html::escape(tap.diagnosis->detail) : "");
  }
  if (rows.empty()) return "";
  return "<h2>What did not "
         "pass</h2>\n<table><tr><th>tap</th><th>status</th><th>fault</th><th>what</th></tr>\n" +
         rows + "</table>\n";
}

}  // namespace

std::string to_page(const CompareDumpsSettings& s, const DumpComparison& found) {
  std::string page = html::head({.title = "assay compare dumps", .style = kHeatMapStyle}) + "<main>\n";
  page += fmt::format("<h1>{}</h1>\n<p class=\"soft\">against {}</p>\n", html::escape(s.test),
                      html::escape(s.ref));
  page += fmt::format("<p class=\"verdict {}\">{}</p>\n",
                      found.good()            ? "good"
                      : found.vacuous.empty() ? "bad"
                                              : "warn",
                      html::escape(verdict_line(found)));
  for (const std::string& note : found.notes)
    page += fmt::format("<p class=\"soft\">{}</p>\n", html::escape(note));
  if (found.taps.empty()) return page + "</main>\n" + std::string(html::kEnd);
  page += "<div class=\"tiles\">\n";
  page +=
      html::tile(fmt::format("{} of {}", found.count(CaseStatus::passed), found.taps.size()), "taps pass");
  page +=
      html::tile(found.first_divergence() == nullptr ? "none" : html::escape(found.first_divergence()->name),
                 "first divergence");
  const std::string over = tokens_over(found.token_heat);
  page +=
      html::tile(over.empty() ? "none" : html::escape(over), fmt::format("tokens over, of {}", found.tokens));
  page +=
      html::tile(fmt::format("{} / {}", found.missing.size(), found.extra.size()), "taps missing / extra");
  page += "</div>\n" + faults(found);
  page += "<h2>Error, of its limit</h2>\n<p class=\"soft\">Above 1 in red. Hover for figures.</p>\n";
  page += layer_map(found, {.low = 1e-3, .limit = 1, .high = 1e4},
                    [](const TapResult& tap) { return tap.error.ratio; });
  page += "<h2>Error, relative</h2>\n<p class=\"soft\">‖TEST − REF‖ / ‖REF‖.</p>\n";
  page +=
      layer_map(found, {.low = 1e-9, .high = 1}, [](const TapResult& tap) { return tap.error.frobenius; });
  page += "<h2>Tap by metric</h2>\n" + metric_map(found);
  page += "<h2>Tokens</h2>\n<p class=\"soft\">Of each the largest error of all taps, of its limit.</p>\n" +
          token_map(found);
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
