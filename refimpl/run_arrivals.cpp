#include "refimpl/run_arrivals.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

// A layer is computed from when its rows are there until the next one's are asked for. Of the last nobody knows.
double computed_to(const std::vector<LayerArrival>& layers, std::size_t layer) {
  return layer + 1 < layers.size() ? layers[layer + 1].asked : layers[layer].there;
}

double overlap(const std::vector<LayerArrival>& layers, std::size_t read, std::size_t computed) {
  return std::max(0.0, std::min(layers[read].read_to, computed_to(layers, computed)) -
                           std::max(layers[read].read_from, layers[computed].there));
}

template <class Seconds>
double sum_over(const ArrivalTimeline& timeline, const Seconds& seconds) {
  double sum = 0;
  for (const std::vector<LayerArrival>& layers : timeline.steps)
    for (std::size_t layer = 0; layer < layers.size(); ++layer) sum += seconds(layers, layer);
  return sum;
}

}  // namespace

double ArrivalTimeline::reading() const {
  return sum_over(*this,
                  [](const auto& layers, std::size_t l) { return layers[l].read_to - layers[l].read_from; });
}

double ArrivalTimeline::waited() const {
  return sum_over(*this, [](const auto& layers, std::size_t l) { return layers[l].there - layers[l].asked; });
}

double ArrivalTimeline::beside() const {
  return sum_over(*this, [](const auto& layers, std::size_t l) {
    double sum = 0;
    for (std::size_t earlier = 0; earlier < l; ++earlier) sum += overlap(layers, l, earlier);
    return sum;
  });
}

Json to_json(const ArrivalTimeline& timeline) {
  Json list = Json::array();
  for (std::size_t step = 0; step < timeline.steps.size(); ++step) {
    const std::vector<LayerArrival>& layers = timeline.steps[step];
    for (std::size_t l = 0; l < layers.size(); ++l)
      list.push_back({{"step", step},
                      {"layer", layers[l].layer},
                      {"numbers", layers[l].numbers},
                      {"read", {layers[l].read_from, layers[l].read_to}},
                      {"waited", {layers[l].asked, layers[l].there}},
                      {"computed", {layers[l].there, computed_to(layers, l)}}});
  }
  return {{"reading_seconds", timeline.reading()},
          {"beside_seconds", timeline.beside()},
          {"waited_seconds", timeline.waited()},
          {"layers", std::move(list)}};
}

std::string line_of(const ArrivalTimeline& timeline) {
  if (timeline.steps.empty()) return {};
  const double reading = timeline.reading();
  return fmt::format(
      "blocks came layer by layer: reading {:.2f} ms, {:.0f}% of it while earlier layers were computed; "
      "{:.2f} ms "
      "waited for",
      1000 * reading, reading > 0 ? 100 * timeline.beside() / reading : 0.0, 1000 * timeline.waited());
}

}  // namespace assay
