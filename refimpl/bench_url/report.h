// What a load showed: as text, as JSON, as a page. Every figure has its definition beside it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "refimpl/bench_url/identities.h"

namespace assay {

struct LoadReport {
  std::string url, route, model, load, prompts, counted_by;  // in words
  ServiceLevel level;
  LoadRecords records;
  std::vector<RequestLatency> latencies;
  LoadFigures figures;
  std::vector<Identity> identities;
  bool interrupted = false;

  std::map<std::string, std::size_t> failures() const;  // by what went wrong
  // Why the figures are not to be trusted; empty: they are.
  std::vector<std::string> distrust() const;
  std::string verdict() const;  // a line, that begins with MEASURED, MISTRUSTED or FAILED
  bool good() const;
};

// A figure that is a spread, with what it means; in the order in which they are told.
struct ToldSpread {
  std::string_view key, name, meaning;
  const Spread* spread;
  bool known = true;
};
std::vector<ToldSpread> spreads_of(const LoadFigures& figures);
struct ToldFigure {
  std::string_view key, name, meaning;
  double value;
};
std::vector<ToldFigure> single_figures_of(const LoadReport& report);

void render_text(const LoadReport& report, const Output& output);
Json render_json(const LoadReport& report);
std::string render_html(const LoadReport& report);

}  // namespace assay
