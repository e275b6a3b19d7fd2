#include "refimpl/sampling/stop_text.h"

#include <algorithm>
#include <utility>

#include "core/system/error.h"

namespace assay {

StopText::StopText(const std::vector<std::string>& stops, bool keep) : keep_(keep) {
  for (const std::string& text : stops) {
    if (text.empty()) throw Error::usage("a stop string is empty");
    Stop stop = {text, std::vector<std::size_t>(text.size())};
    for (std::size_t i = 1, matched = 0; i < text.size(); ++i) {
      while (matched > 0 && text[i] != text[matched]) matched = stop.fallback[matched - 1];
      if (text[i] == text[matched]) ++matched;
      stop.fallback[i] = matched;
    }
    stops_.push_back(std::move(stop));
  }
}

std::string StopText::push(std::string_view text) {
  if (stopped_) return {};
  for (const char c : text) {
    held_ += c;
    for (Stop& stop : stops_) {
      while (stop.matched > 0 && c != stop.text[stop.matched]) stop.matched = stop.fallback[stop.matched - 1];
      if (c == stop.text[stop.matched]) ++stop.matched;
      if (stop.matched < stop.text.size()) continue;
      stop.matched = 0;
      if (stop.text.size() > found_.size()) found_ = stop.text;
      stopped_ = true;
    }
    if (!stopped_) continue;
    if (!keep_) held_.resize(held_.size() - found_.size());
    return std::exchange(held_, {});
  }
  std::size_t open = 0;  // bytes at the end that begin a stop string
  for (const Stop& stop : stops_) open = std::max(open, stop.matched);
  std::string sure = held_.substr(0, held_.size() - open);
  held_.erase(0, sure.size());
  return sure;
}

std::string StopText::finish() {
  return stopped_ ? std::string() : std::exchange(held_, {});
}

}  // namespace assay
