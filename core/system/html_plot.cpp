#include "core/system/html_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"

namespace assay::html {
namespace {

constexpr double kWidth = 760, kHeight = 260, kLeft = 56, kRight = 16, kTop = 12, kBottom = 34;
constexpr std::size_t kMostPoints = 20, kColours = 3;

// A logarithmic axis begins at 1, unless it is told to begin elsewhere.
double least_of(const Plot& plot) {
  return plot.logarithmic && plot.x_least <= 0 ? 1 : plot.x_least;
}

double x_of(const Plot& plot, double value) {
  const double least = least_of(plot);
  const double most = std::max(plot.x_most, plot.logarithmic ? 2 * least : plot.x_most);
  const double span = plot.logarithmic ? std::log(most / least) : most - least;
  const double part = plot.logarithmic ? std::log(std::max(least, value) / least) : value - least;
  return kLeft + (span > 0 ? part / span : 0) * (kWidth - kLeft - kRight);
}

double y_of(const Plot& plot, double value) {
  const double part = (value - plot.y_least) / (plot.y_most - plot.y_least);
  return kHeight - kBottom - part * (kHeight - kTop - kBottom);
}

std::vector<double> marks_of(const Plot& plot) {
  std::vector<double> marks;
  const double least = least_of(plot);
  if (plot.logarithmic) {
    for (double value = std::pow(10, std::floor(std::log10(least)) + 1); value <= plot.x_most; value *= 10)
      marks.push_back(value);
  } else {
    for (int i = 0; i <= 4; ++i) marks.push_back(least + (plot.x_most - least) * i / 4);
  }
  return marks;
}

std::string axes(const Plot& plot) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double value = plot.y_least + (plot.y_most - plot.y_least) * i / 4;
    const std::string label = plot.y_powers ? fmt::format("1e{:.3g}", value) : fmt::format("{:.4g}", value);
    out += fmt::format(
        R"(<line class="axis" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/><text class="label" x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5}</text>)",
        kLeft, kWidth - kRight, y_of(plot, value), kLeft - 6, y_of(plot, value) + 4, label);
  }
  for (const double value : marks_of(plot))
    out += fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.4g}</text>)",
                       x_of(plot, value), kHeight - kBottom + 16, value);
  return out + fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
                           kWidth - kRight, kHeight - 4, escape(plot.x_label));
}

}  // namespace

std::string draw(const Plot& plot) {
  std::string out = fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", kWidth,
                                kHeight, escape(plot.y_label));
  out += axes(plot);
  std::string legend = "<div class=\"legend\">";
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    std::string path;
    for (const auto& [x, y] : curve.points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x_of(plot, x), y_of(plot, y));
    out += fmt::format(R"svg(<path class="curve" style="--c:var(--c{})" d="{}"/>)svg", i % kColours, path);
    if (curve.points.size() <= kMostPoints) {
      for (const auto& [x, y] : curve.points)
        out += fmt::format(
            R"svg(<circle class="point" style="--c:var(--c{})" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{:.6g}: {:.4g}</title></circle>)svg",
            i % kColours, x_of(plot, x), y_of(plot, y), x, y);
    }
    legend += fmt::format(R"svg(<span><i style="background:var(--c{})"></i>{}</span>)svg", i % kColours,
                          escape(curve.name));
  }
  return out + "</svg>" + legend + "</div>";
}

std::string card(std::string_view title, const std::string& body) {
  return fmt::format("<section class=\"card\"><h2>{}</h2>\n{}</section>\n", escape(title), body);
}

}  // namespace assay::html
