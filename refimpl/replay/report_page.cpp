// The page of a replay: hit rate by capacity, and what the steps held by time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "core/system/text.h"
#include "refimpl/replay/report.h"

namespace assay {
namespace {

constexpr std::string_view kStyle = R"css(
svg { width: 100%; height: auto; }
section.card { margin: 14px 0; }
.axis { stroke: var(--line); stroke-width: 1; }
.label { fill: var(--soft); font-size: 11px; }
.curve { fill: none; stroke-width: 2; stroke: var(--c); }
.point { fill: var(--c); }
.legend { display: flex; gap: 16px; flex-wrap: wrap; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: 12px; height: 3px; margin-right: 6px; vertical-align: middle; }
)css";
constexpr std::string_view kLight = "--c0: #2f6fd0; --c1: #c2571a; --c2: #2c8a4b;";
constexpr std::string_view kDark = "--c0: #7fb0ff; --c1: #ffab73; --c2: #7fd49b;";
constexpr double kWidth = 760, kHeight = 260, kLeft = 56, kRight = 16, kTop = 12, kBottom = 34;

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct Plot {
  std::string x_label, y_label;
  double x_most = 1, y_most = 1;
  bool logarithmic = false;  // x: from 1 on
  std::vector<Curve> curves;

  double x(double value) const {
    const double share =
        logarithmic ? std::log(std::max(1.0, value)) / std::log(std::max(2.0, x_most)) : value / x_most;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double value) const { return kHeight - kBottom - value / y_most * (kHeight - kTop - kBottom); }
};

std::string axes(const Plot& plot) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double value = plot.y_most * i / 4;
    out += fmt::format(
        R"(<line class="axis" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/><text class="label" x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5:.4g}</text>)",
        kLeft, kWidth - kRight, plot.y(value), kLeft - 6, plot.y(value) + 4, value);
  }
  std::vector<double> marks;
  if (plot.logarithmic) {
    for (double value = 10; value <= plot.x_most; value *= 10) marks.push_back(value);
  } else {
    for (int i = 0; i <= 4; ++i) marks.push_back(plot.x_most * i / 4);
  }
  for (const double value : marks)
    out += fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.4g}</text>)",
                       plot.x(value), kHeight - kBottom + 16, value);
  return out + fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
                           kWidth - kRight, kHeight - 4, html::escape(plot.x_label));
}

std::string draw(const Plot& plot) {
  std::string out = fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", kWidth,
                                kHeight, html::escape(plot.y_label));
  out += axes(plot);
  std::string legend = "<div class=\"legend\">";
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    std::string path;
    for (const auto& [x, y] : plot.curves[i].points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", plot.x(x), plot.y(y));
    out += fmt::format(R"svg(<path class="curve" style="--c:var(--c{})" d="{}"/>)svg", i % 3, path);
    if (plot.curves[i].points.size() <= 20) {
      for (const auto& [x, y] : plot.curves[i].points)
        out += fmt::format(
            R"svg(<circle class="point" style="--c:var(--c{})" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{:.6g}: {:.4g}</title></circle>)svg",
            i % 3, plot.x(x), plot.y(y), x, y);
    }
    legend += fmt::format(R"svg(<span><i style="background:var(--c{})"></i>{}</span>)svg", i % 3,
                          html::escape(plot.curves[i].name));
  }
  return out + "</svg>" + legend + "</div>";
}

std::string card(std::string_view title, const std::string& body) {
  return fmt::format("<section class=\"card\"><h2>{}</h2>\n{}</section>\n", html::escape(title), body);
}

std::string hits_card(const ReplayReport& report) {
  if (report.hits.empty()) return {};
  Plot plot{
      .x_label = "capacity in blocks", .y_label = "hit rate in percent", .logarithmic = true, .curves = {}};
  plot.y_most = 10;
  Curve every{"every block", {}}, engine{"full blocks, at most n − 1 tokens", {}};
  for (const ReplayReport::Hits& h : report.hits) {
    const auto capacity = static_cast<double>(h.capacity == 0 ? report.distinct_blocks : h.capacity);
    plot.x_most = std::max(plot.x_most, capacity);
    every.points.emplace_back(capacity, 100 * h.every_block.rate());
    engine.points.emplace_back(capacity, 100 * h.engine.rate());
    plot.y_most = std::max(plot.y_most, std::ceil(10 * h.every_block.rate()) * 10);
  }
  plot.curves = {every, engine};
  return card("Hit rate by capacity, %", draw(plot));
}

std::string run_card(const ReplayReport& report, const ReplayReport::Run& run) {
  Plot fill{.x_label = "seconds", .y_label = "tokens a step", .curves = {}};
  Plot queue{.x_label = "seconds", .y_label = "requests", .curves = {}};
  Curve tokens{"tokens a step", {}}, running{"running", {}}, waiting{"waiting", {}};
  for (const SimulatedMoment& m : run.counts.moments) {
    const double at = m.ms / 1000;
    fill.x_most = queue.x_most = std::max(fill.x_most, at);
    tokens.points.emplace_back(at, static_cast<double>(m.tokens));
    running.points.emplace_back(at, static_cast<double>(m.running));
    waiting.points.emplace_back(at, static_cast<double>(m.waiting));
    fill.y_most = std::max(fill.y_most, static_cast<double>(m.tokens));
    queue.y_most = std::max({queue.y_most, static_cast<double>(m.running), static_cast<double>(m.waiting)});
  }
  fill.curves = {tokens};
  queue.curves = {running, waiting};
  std::string tiles = "<div class=\"tiles\">";
  tiles += html::tile(with_thousands(run.counts.finished), "finished");
  tiles += html::tile(fmt::format("{:.0f} %", 100 * run.counts.batch_fill), "batch fill");
  tiles += html::tile(with_thousands(run.counts.hit_tokens), "tokens hit");
  tiles += html::tile(with_thousands(run.counts.preemptions), "preemptions");
  tiles += html::tile(with_thousands(run.counts.recomputed_tokens), "tokens computed again");
  tiles += html::tile(fmt::format("{:.2f} s", percentile(run.counts.first_token_ms, 0.5) / 1000),
                      "first token, p50");
  tiles += html::tile(fmt::format("{:.2f} s", percentile(run.counts.first_token_ms, 0.99) / 1000),
                      "first token, p99");
  if (report.slo_ms > 0) tiles += html::tile(with_thousands(run.counts.late), "later than the SLO");
  tiles += "</div>\n";
  return card(
      fmt::format("{} blocks, {}{}", with_thousands(run.capacity), name(run.policy),
                  run.early_rejection ? ", rejects early" : ""),
      tiles + "<h3>Tokens a step, by time</h3>" + draw(fill) + "<h3>Requests, by time</h3>" + draw(queue));
}

}  // namespace

std::string render_html(const ReplayReport& report) {
  std::string page = html::head({.title = "assay replay", .style = kStyle, .light = kLight, .dark = kDark});
  page += fmt::format("<main>\n<h1>{}</h1>\n<p>{} requests, {:.1f} tokens in and {:.1f} out on average</p>\n",
                      html::escape(report.trace), with_thousands(report.requests), report.mean_input,
                      report.mean_output);
  page += hits_card(report);
  for (const ReplayReport::Run& run : report.runs) page += run_card(report, run);
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
