// Faults that serving engines were shipped with, planted in ours: what a comparison that says "equal" must catch.
// Numbers and sources as in docs/serving.md.
#pragma once

#include <string>
#include <vector>

#include "refimpl/claims/schedule.h"
#include "refimpl/claims/speculation_faults.h"

namespace assay {

struct ServingFault {
  int number = 0;
  std::string shipped_in;  // "vllm#12621"
  std::string what;
  ServingParts parts;
  bool needs_windows = false;  // shows in models whose layers look differently far back
  OuterAround around = {};     // the second level, where the fault lies there
  GuessingFault guessing = {};
  bool needs_rows = false;  // shows in models whose layers keep rows of their tokens: not in Mamba 2
};
std::vector<ServingFault> serving_faults();

struct FaultVerdict {
  bool caught = false;
  std::uint64_t schedules = 0;  // until it was
  std::string by;               // what was seen
};
// Random schedules from seed 0 on, until one goes wrong.
FaultVerdict catch_fault(const ServingWorkload& workload, const ServingFault& fault,
                         std::uint64_t most_schedules);

}  // namespace assay
