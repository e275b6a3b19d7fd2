#include "refimpl/handoff/handoff_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kBar = 40;

double sum_of(const std::vector<LayerTime>& layers, TimeSpan LayerTime::*span) {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [&](double sum, const LayerTime& layer) { return sum + (layer.*span).seconds(); });
}

std::string milliseconds(const TimeSpan& span) {
  return fmt::format("{:.2f} – {:.2f}", 1000 * span.from, 1000 * span.to);
}

// '=' while it is computed, '>' while it goes.
std::string bar(const LayerTime& layer, double end) {
  std::string cells(kBar, '.');
  const auto paint = [&](const TimeSpan& span, char with) {
    if (!(end > 0)) return;
    const auto cell = [&](double at) {
      return std::min(kBar - 1, static_cast<std::size_t>(static_cast<double>(kBar) * at / end));
    };
    for (std::size_t i = cell(span.from); i <= cell(span.to); ++i) cells[i] = with;
  };
  paint(layer.computed, '=');
  paint(layer.sent, '>');
  return cells;
}

}  // namespace

double HandoffTimeline::computing() const {
  return sum_of(layers, &LayerTime::computed);
}
double HandoffTimeline::sending() const {
  return sum_of(layers, &LayerTime::sent);
}
double HandoffTimeline::overlapped() const {
  double seconds = 0;
  for (const LayerTime& sent : layers) {
    for (const LayerTime& computed : layers)
      seconds += std::max(0.0, std::min(sent.sent.to, computed.computed.to) -
                                   std::max(sent.sent.from, computed.computed.from));
  }
  return seconds;
}

Json to_json(const HandoffTimeline& timeline) {
  Json layers = Json::array();
  for (const LayerTime& layer : timeline.layers)
    layers.push_back({{"layer", layer.layer},
                      {"first", layer.first},
                      {"tokens", layer.rows},
                      {"computed", {layer.computed.from, layer.computed.to}},
                      {"sent", {layer.sent.from, layer.sent.to}},
                      {"bytes", layer.bytes}});
  return {{"computing_seconds", timeline.computing()},
          {"sending_seconds", timeline.sending()},
          {"overlapped_seconds", timeline.overlapped()},
          {"layers", layers}};
}

std::string render(const HandoffTimeline& timeline, std::size_t most_lines) {
  Table table({"layer", "tokens", "computed, ms", "sent, ms", "bytes", "= computed, > sent"},
              {Table::Align::right, Table::Align::left, Table::Align::right, Table::Align::right,
               Table::Align::right, Table::Align::left});
  double end = 0;
  for (const LayerTime& layer : timeline.layers) end = std::max({end, layer.computed.to, layer.sent.to});
  for (std::size_t i = 0; i < std::min(most_lines, timeline.layers.size()); ++i) {
    const LayerTime& layer = timeline.layers[i];
    table.add({std::to_string(layer.layer), fmt::format("{}–{}", layer.first, layer.first + layer.rows - 1),
               milliseconds(layer.computed), milliseconds(layer.sent), with_thousands(layer.bytes),
               bar(layer, end)});
  }
  std::string text = table.render();
  if (timeline.layers.size() > most_lines)
    text += fmt::format("… and {} more\n", timeline.layers.size() - most_lines);
  const double sending = timeline.sending();
  return text +
         fmt::format("computing {:.2f} ms, sending {:.2f} ms, {:.0f}% of it while layers were computed",
                     1000 * timeline.computing(), 1000 * sending,
                     sending > 0 ? 100 * timeline.overlapped() / sending : 0.0);
}

}  // namespace assay
