#include "convert/report_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/system/html_page.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr double kWidth = 1140, kLeft = 56, kRight = 30, kTop = 14, kBottom = 34;
constexpr std::size_t kColours = 16;  // --c0 … --c15 of the page

// A round step that cuts `span` into about `parts`.
double round_step(double span, double parts) {
  const double rough = std::max(span, 1e-9) / parts, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

struct Scale {
  double low, high, from, to;
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

struct Mark {
  ErrorSums sums;
  double worst = 1e300, best = -1e300;
  std::uint64_t tensors = 0;
  std::string worst_name;
};

std::string grid_line(double y, const std::string& label) {
  return fmt::format(
      R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/><text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
      kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, label);
}

std::string x_label(double x, double y, const std::string& label) {
  return fmt::format(R"(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", x, y,
                     label);
}

std::string frame(double height, const std::string& label) {
  return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", kWidth, height,
                     label);
}

// The multiples of `step` on the scale, each rounded once.
std::vector<double> multiples(const Scale& scale, double step) {
  const auto first = static_cast<std::int64_t>(std::ceil(scale.low / step));
  const auto last = static_cast<std::int64_t>(std::floor((scale.high + 1e-9) / step));
  std::vector<double> values;
  for (std::int64_t i = first; i <= last; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

std::string y_axis(const Scale& y, double step, const std::string& unit) {
  std::string out;
  for (const double value : multiples(y, step))
    out += grid_line(y.at(value), fmt::format("{:g}{}", value, unit));
  return out;
}

std::string legend(const std::map<std::string, std::size_t>& roles) {
  std::string out = "<div class=\"legend\">";
  for (const auto& [role, number] : roles) {
    out += fmt::format(R"svg(<span><i style="background:var(--c{})"></i>{}</span>)svg", number % kColours,
                       html::escape(role));
  }
  return out + "</div>";
}

bool is_number(std::string_view part) {
  return parse_u64(part).has_value();
}

}  // namespace

TensorPlace place_of(std::string_view tensor) {
  TensorPlace place;
  std::string after_layer, whole;
  for (std::size_t begin = 0; begin <= tensor.size();) {
    const std::size_t dot = std::min(tensor.find('.', begin), tensor.size());
    const std::string_view part = tensor.substr(begin, dot - begin);
    if (is_number(part) && !place.layer) {
      place.layer = parse_u64(part);
    } else {
      std::string& role = place.layer ? after_layer : whole;
      role += (role.empty() ? "" : ".") + (is_number(part) ? "*" : std::string(part));
    }
    begin = dot + 1;
  }
  place.role = place.layer ? after_layer : whole;
  if (place.role.ends_with(".weight")) place.role.resize(place.role.size() - 7);
  return place;
}

std::string plot_by_layer(const std::vector<PlottedTensor>& tensors) {
  std::map<std::string, std::size_t> roles;
  std::map<std::pair<std::uint64_t, std::string>, Mark> marks;
  std::uint64_t last = 0;
  for (const PlottedTensor& tensor : tensors) {
    const TensorPlace place = place_of(tensor.name);
    if (!place.layer || tensor.sums.error_squares == 0) continue;
    roles.try_emplace(place.role, 0);
    last = std::max(last, *place.layer);
    Mark& mark = marks[{*place.layer, place.role}];
    mark.sums.add(tensor.sums);
    ++mark.tensors;
    const double db = tensor.sums.sqnr_db();
    if (db < mark.worst) mark.worst_name = tensor.name;
    mark.worst = std::min(mark.worst, db);
    mark.best = std::max(mark.best, db);
  }
  if (marks.empty()) return "<p class=\"soft\">No tensor inside a layer changed.</p>";
  std::size_t number = 0;
  for (auto& [role, place] : roles) place = number++;
  double low = 1e300, high = -1e300;
  for (const auto& [key, mark] : marks) {
    low = std::min(low, mark.worst);
    high = std::max(high, mark.best);
  }
  const double height = 360, margin = std::max(0.5, (high - low) * 0.06);
  const Scale y{low - margin, high + margin, height - kBottom, kTop};
  const Scale x{-0.5, static_cast<double>(last) + 0.5, kLeft, kWidth - kRight};
  std::string out = frame(height, "signal-to-noise ratio by layer and role");
  out += y_axis(y, round_step(y.high - y.low, 6), " dB");
  const auto step = static_cast<std::uint64_t>(std::max(1.0, round_step(static_cast<double>(last) + 1, 20)));
  for (std::uint64_t layer = 0; layer <= last; layer += step)
    out += x_label(x.at(static_cast<double>(layer)), height - 14, std::to_string(layer));
  out += x_label(kLeft - 22, height - 14, "layer");
  const double slot = (x.at(1) - x.at(0)) * 0.8 / static_cast<double>(roles.size());
  for (const auto& [key, mark] : marks) {
    const std::size_t role = roles.at(key.second);
    const double at = x.at(static_cast<double>(key.first)) +
                      (static_cast<double>(role) - (static_cast<double>(roles.size()) - 1) / 2) * slot;
    out += fmt::format(
        R"svg(<g style="--c:var(--c{})"><title>layer {}, {}: {:.2f} dB over {} tensors, worst {:.2f} dB ({})</title>)svg",
        role % kColours, key.first, html::escape(key.second), mark.sums.sqnr_db(), mark.tensors, mark.worst,
        html::escape(mark.worst_name));
    if (mark.tensors > 1)
      out += fmt::format(R"(<line class="range" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>)", at,
                         y.at(mark.worst), y.at(mark.best));
    out += fmt::format(R"(<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/></g>)", at,
                       y.at(mark.sums.sqnr_db()), std::clamp(slot * 0.45, 1.5, 4.5));
  }
  return out + "</svg>" + legend(roles);
}

std::string plot_histogram(const std::vector<PlottedTensor>& tensors) {
  std::vector<double> values;
  for (const PlottedTensor& tensor : tensors)
    if (tensor.sums.error_squares != 0) values.push_back(tensor.sums.sqnr_db());
  if (values.empty()) return "<p class=\"soft\">Every tensor is exact.</p>";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double step = round_step(std::max(*most - *least, 0.5), 30), start = std::floor(*least / step) * step;
  std::vector<std::uint64_t> counts(static_cast<std::size_t>((*most - start) / step) + 1);
  for (const double value : values)
    ++counts[std::min(counts.size() - 1, static_cast<std::size_t>((value - start) / step))];
  const double height = 220, top = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const Scale y{0, top * 1.05, height - kBottom, kTop};
  const Scale x{start, start + step * static_cast<double>(counts.size()), kLeft, kWidth - kRight};
  std::string out = frame(height, "how many tensors have which signal-to-noise ratio");
  out += y_axis(y, std::max(1.0, round_step(top, 4)), "");
  const double label_step = round_step(x.high - x.low, 12);
  for (const double value : multiples(x, label_step))
    out += x_label(x.at(value), height - 14, fmt::format("{:g} dB", value));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double left = start + step * static_cast<double>(i);
    if (counts[i] == 0) continue;
    out += fmt::format(
        R"(<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{:g} to {:g} dB: {} tensors</title></rect>)",
        x.at(left) + 0.5, y.at(static_cast<double>(counts[i])),
        std::max(1.0, x.at(left + step) - x.at(left) - 1), y.at(0) - y.at(static_cast<double>(counts[i])),
        left, left + step, counts[i]);
  }
  return out + "</svg>";
}

}  // namespace assay
