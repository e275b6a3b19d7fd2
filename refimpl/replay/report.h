// What a replay found: as text, as JSON, as a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "refimpl/replay/hit_counts.h"
#include "refimpl/replay/simulate.h"

namespace assay {

struct ReplayReport {
  struct Hits {
    std::size_t capacity = 0;  // blocks; 0: all
    HitCounts every_block, engine;
  };
  struct Run {
    std::size_t capacity = 0;  // blocks
    Policy policy = Policy::first_come;
    bool early_rejection = false;
    SimulationCounts counts;
    std::optional<bool> counted_alike = {};  // by the scheduler alone, of what an engine served
  };
  std::string trace, served_by;  // a model; empty: counts only
  std::size_t requests = 0, distinct_blocks = 0, block_tokens = 0;
  double mean_input = 0, mean_output = 0, seconds = 0;
  double slo_ms = 0;
  std::vector<Hits> hits;  // none where the trace knows no blocks
  std::vector<Run> runs;
};

std::string_view name(Policy policy);  // "fcfs"
void render_text(const ReplayReport& report, const Output& output);
Json render_json(const ReplayReport& report);
std::string render_html(const ReplayReport& report);

// The value below which a share of them lies; of none 0.
double percentile(std::vector<double> values, double share);

}  // namespace assay
