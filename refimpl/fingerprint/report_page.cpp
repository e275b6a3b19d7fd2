// The page of a fingerprint: singular values, and where they end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "core/system/html_plot.h"
#include "refimpl/fingerprint/report.h"

namespace assay {
namespace {

constexpr double kDeepest = 20;  // powers of ten below the largest: what is lower is a zero

html::Curve curve_of(std::string name, const std::vector<double>& values, double least) {
  html::Curve curve{std::move(name), {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    curve.points.emplace_back(static_cast<double>(i + 1),
                              std::max(least, std::log10(std::max(values[i], 1e-300))));
  return curve;
}

std::string spectrum_card(const Fingerprint& found) {
  const std::vector<double>& values = found.logits.values;
  if (values.empty() || !(values.front() > 0)) return {};
  html::Plot plot{.x_label = "which singular value, the largest first",
                  .y_label = "singular values",
                  .x_most = static_cast<double>(values.size()),
                  .y_powers = true,
                  .curves = {}};
  plot.y_most = std::ceil(std::log10(values.front()));
  plot.y_least =
      plot.y_most -
      4 * std::ceil(std::min(kDeepest, plot.y_most - std::log10(std::max(values.back(), 1e-300))) / 4);
  if (plot.y_least >= plot.y_most) plot.y_least = plot.y_most - 4;
  plot.curves.push_back(curve_of("of the logits", values, plot.y_least));
  if (!found.differences.values.empty())
    plot.curves.push_back(curve_of("of their differences", found.differences.values, plot.y_least));
  if (found.rank.rank) {
    const double x = static_cast<double>(*found.rank.rank) + 0.5;
    plot.curves.push_back(
        {fmt::format("the rank, {}", *found.rank.rank), {{x, plot.y_least}, {x, plot.y_most}}});
  }
  return html::card("Singular values", html::draw(plot));
}

std::string published_table(const Fingerprint& found) {
  const std::vector<PublishedSize> like = published_like(found);
  if (like.empty()) return {};
  std::string body =
      "<h2>Published with this hidden size</h2><div class=\"scroll\"><table><tr><th>model</th>"
      "<th class=\"number\">vocabulary</th><th></th></tr>\n";
  for (const PublishedSize& size : like)
    body +=
        fmt::format("<tr><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n", html::escape(size.model),
                    size.vocabulary, found.vocabulary == size.vocabulary ? "the server's, too" : "");
  return body + "</table></div>\n";
}

}  // namespace

std::string render_html(const Fingerprint& found) {
  std::string page = html::head({.title = "assay fingerprint",
                                 .style = html::kPlotStyle,
                                 .light = html::kPlotLight,
                                 .dark = html::kPlotDark});
  page += fmt::format("<main>\n<h1>{}{}</h1>\n<p class=\"soft\">{}</p>\n<p class=\"verdict {}\">{}</p>\n",
                      html::escape(found.url), html::escape(found.route), html::escape(found.model),
                      found.hidden ? "good" : "warn", html::escape(verdict_of(found)));
  page += "<div class=\"tiles\">";
  if (found.hidden) page += html::tile(fmt::format("{}", found.hidden->size), "hidden size");
  if (found.soft_cap) page += html::tile(fmt::format("{:.6g}", *found.soft_cap), "soft cap of the logits");
  if (found.vocabulary) page += html::tile(fmt::format("{}", *found.vocabulary), "vocabulary");
  if (found.logits.contexts > 0)
    page +=
        html::tile(fmt::format("{} × {}", found.logits.contexts, found.logits.tokens), "vectors × tokens");
  page += "</div>\n";
  for (const std::string& line : account_of(found)) page += fmt::format("<p>{}</p>\n", html::escape(line));
  page += spectrum_card(found) + published_table(found);
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
