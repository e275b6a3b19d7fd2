// The page of a load: what share of requests came within what time, and what was under way when.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "core/system/html_plot.h"
#include "core/system/text.h"
#include "refimpl/bench_url/report.h"

namespace assay {
namespace {

constexpr double kToMs = 1000;
constexpr std::size_t kMostSteps = 400;  // of a curve: what a page can show
constexpr std::size_t kBins = 100;       // of the timeline

// The share of values at or below each of them.
html::Curve shares_of(std::string name, std::vector<double> seconds) {
  html::Curve curve{std::move(name), {}};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t stride = std::max<std::size_t>(1, seconds.size() / kMostSteps);
  for (std::size_t i = 0; i < seconds.size();
       i += i + stride < seconds.size() || i + 1 == seconds.size() ? stride : seconds.size() - 1 - i)
    curve.points.emplace_back(seconds[i] * kToMs,
                              100 * static_cast<double>(i + 1) / static_cast<double>(seconds.size()));
  return curve;
}

std::string share_card(std::string_view title, std::vector<html::Curve> curves) {
  html::Plot plot{.x_label = "milliseconds", .y_label = "percent at or below", .y_most = 100, .curves = {}};
  double least = HUGE_VAL, most = 0;
  for (const html::Curve& curve : curves) {
    for (const auto& [ms, share] : curve.points) {
      most = std::max(most, ms);
      if (ms > 0) least = std::min(least, ms);
    }
  }
  if (most == 0) return {};
  plot.x_least = least;
  plot.x_most = most;
  plot.logarithmic = most > 20 * least;
  if (!plot.logarithmic) plot.x_least = 0;
  plot.curves = std::move(curves);
  return html::card(title, html::draw(plot));
}

std::string shares(const LoadReport& report) {
  std::vector<double> first, whole, per_token, chunk_gaps, token_gaps;
  for (const RequestLatency& latency : report.latencies) {
    first.push_back(latency.first_token);
    whole.push_back(latency.whole);
    if (latency.per_token) per_token.push_back(*latency.per_token);
    chunk_gaps.insert(chunk_gaps.end(), latency.chunk_gaps.begin(), latency.chunk_gaps.end());
    if (latency.token_gaps)
      token_gaps.insert(token_gaps.end(), latency.token_gaps->begin(), latency.token_gaps->end());
  }
  std::vector<html::Curve> gaps = {shares_of("ITL a chunk", chunk_gaps), shares_of("TPOT", per_token)};
  if (report.figures.token_gaps_known) gaps.insert(gaps.begin() + 1, shares_of("ITL a token", token_gaps));
  return share_card("Percent of requests within: TTFT and E2E",
                    {shares_of("TTFT", std::move(first)), shares_of("E2E", std::move(whole))}) +
         share_card("Percent of gaps within: ITL a chunk, ITL a token; of requests: TPOT", std::move(gaps));
}

std::string timeline(const LoadReport& report) {
  double end = 0;
  for (const RequestRecord& record : report.records.requests) end = std::max(end, record.ended);
  if (!(end > 0)) return {};
  html::Plot flight{.x_label = "seconds", .y_label = "requests in flight", .x_most = end, .curves = {}};
  html::Plot speed{.x_label = "seconds", .y_label = "output tokens a second", .x_most = end, .curves = {}};
  html::Curve in_flight{"in flight", {}}, tokens{"output tokens a second", {}};
  long now = 0;
  for (const InFlightChange& change : report.records.changes) {
    in_flight.points.emplace_back(change.at, now);
    now += change.by;
    in_flight.points.emplace_back(change.at, now);
    flight.y_most = std::max(flight.y_most, static_cast<double>(now));
  }
  std::vector<double> bins(kBins);
  for (const RequestRecord& record : report.records.requests)
    for (const ChunkArrival& chunk : record.chunks)
      bins[std::min(kBins - 1, static_cast<std::size_t>(chunk.at / end * kBins))] +=
          static_cast<double>(chunk.tokens.value_or(1)) * kBins / end;
  for (std::size_t i = 0; i < kBins; ++i) {
    tokens.points.emplace_back((static_cast<double>(i) + 0.5) * end / kBins, bins[i]);
    speed.y_most = std::max(speed.y_most, bins[i]);
  }
  flight.curves = {in_flight};
  speed.curves = {tokens};
  return html::card("Requests in flight, by time", html::draw(flight)) +
         html::card("Output tokens a second, by time", html::draw(speed));
}

std::string tables(const LoadReport& report) {
  std::string body =
      "<div class=\"scroll\"><table><tr><th>ms</th><th>mean</th><th>p50</th><th>p90</th><th>p95</th>"
      "<th>p99</th><th>max</th><th>is</th></tr>\n";
  for (const ToldSpread& told : spreads_of(report.figures)) {
    body += fmt::format("<tr><td>{}</td>", html::escape(told.name));
    const Spread& s = *told.spread;
    for (const double value : {s.mean, s.p50, s.p90, s.p95, s.p99, s.most})
      body += told.known && s.count > 0 ? fmt::format("<td class=\"number\">{:.2f}</td>", value * kToMs)
                                        : std::string("<td class=\"number\">–</td>");
    body += fmt::format("<td>{}</td></tr>\n", html::escape(told.meaning));
  }
  body += "</table></div>\n<h2>Identities</h2><div class=\"scroll\"><table>\n";
  for (const Identity& identity : report.identities)
    body +=
        fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td></tr>\n", html::escape(identity.name),
                    !identity.holds   ? "bad"
                    : identity.proved ? "good"
                                      : "warn",
                    !identity.holds   ? "not true"
                    : identity.proved ? "true"
                                      : "not seen",
                    html::escape(identity.wrong));
  for (const auto& [what, count] : report.failures())
    body += fmt::format("<tr><td>failed</td><td class=\"bad\">{}</td><td>{}</td></tr>\n", count,
                        html::escape(what));
  return body + "</table></div>\n";
}

}  // namespace

std::string render_html(const LoadReport& report) {
  std::string page = html::head({.title = "assay bench",
                                 .style = html::kPlotStyle,
                                 .light = html::kPlotLight,
                                 .dark = html::kPlotDark});
  page += fmt::format(
      "<main>\n<h1>{}{}</h1>\n<p class=\"soft\">{}; {}; prompts: {}</p>\n<p class=\"verdict {}\">{}</p>\n",
      html::escape(report.url), html::escape(report.route), html::escape(report.model),
      html::escape(report.load), html::escape(report.prompts), report.good() ? "good" : "bad",
      html::escape(report.verdict()));
  page += "<div class=\"tiles\">";
  page += html::tile(with_thousands(report.figures.whole), "whole requests");
  page += html::tile(with_thousands(report.figures.failed), "failed");
  for (const ToldFigure& told : single_figures_of(report))
    page += html::tile(fmt::format("{:.2f}", told.value),
                       html::escape(fmt::format("{}: {}", told.name, told.meaning)));
  page += "</div>\n" + tables(report) + shares(report) + timeline(report);
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
