// The page of a replay: hit rate by capacity, and what the steps held by time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "core/system/html_plot.h"
#include "core/system/text.h"
#include "refimpl/replay/report.h"

namespace assay {
namespace {

using html::card;
using html::Curve;
using html::draw;
using html::Plot;

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
  std::string page = html::head({.title = "assay replay",
                                 .style = html::kPlotStyle,
                                 .light = html::kPlotLight,
                                 .dark = html::kPlotDark});
  page += fmt::format("<main>\n<h1>{}</h1>\n<p>{} requests, {:.1f} tokens in and {:.1f} out on average</p>\n",
                      html::escape(report.trace), with_thousands(report.requests), report.mean_input,
                      report.mean_output);
  page += hits_card(report);
  for (const ReplayReport::Run& run : report.runs) page += run_card(report, run);
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
