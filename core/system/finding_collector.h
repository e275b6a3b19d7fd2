// Findings about a hostile or broken file, bounded: a million bad lines are twenty findings and a count.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "core/system/finding.h"

namespace assay {

class FindingCollector {
 public:
  static constexpr std::size_t kKeptPerCode = 20;

  void add(Finding finding) {
    Tally& tally = tallies_[finding.code];
    if (++tally.count <= kKeptPerCode) {
      findings_.push_back(std::move(finding));
    } else {
      tally.dropped = std::max(tally.dropped, finding.severity);
    }
  }

  // What was kept, and one more finding for each code of which some were dropped.
  Findings take() {
    for (const auto& [code, tally] : tallies_) {
      if (tally.count <= kKeptPerCode) continue;
      Finding rest;
      rest.severity = tally.dropped;
      rest.code = code;
      rest.message = fmt::format("{} more of the same", tally.count - kKeptPerCode);
      findings_.push_back(std::move(rest));
    }
    tallies_.clear();
    return std::exchange(findings_, {});
  }

 private:
  struct Tally {
    std::size_t count = 0;
    Severity dropped = Severity::note;  // the worst of those not kept
  };
  std::map<std::string, Tally> tallies_;
  Findings findings_;
};

}  // namespace assay
