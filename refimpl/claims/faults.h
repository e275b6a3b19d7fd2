// Faults that serving engines were shipped with, planted in ours: what a comparison that says "equal" must catch.
// Numbers and sources as in docs/serving.md.
#pragma once

#include <string>
#include <vector>

#include "refimpl/claims/directed.h"
#include "refimpl/claims/schedule.h"
#include "refimpl/claims/speculation_faults.h"

namespace assay {

// What a model must have for a fault to show.
enum class ShowsIn : std::uint8_t {
  any,
  windows,
  several_windows,  // or a window and layers that see everything
  rows,
  no_states,
  trees,  // of guesses: where no layer is recurrent
  prediction_layers,
  many_tokens,
};

struct ServingFault {
  int number = 0;
  std::string shipped_in;  // "vllm#12621"
  std::string what;
  ServingParts parts;
  MakeCase made_visible = nullptr;  // none: `guessing` says how it is seen
  ShowsIn shows_in = ShowsIn::any;
  OuterAround around = {};  // the second level, where the fault lies there
  GuessingFault guessing = {};
};
std::vector<ServingFault> serving_faults();
// Empty: the fault can show in this model.
std::string why_not(const ServingFault& fault, const LanguageModel& model);

struct FaultVerdict {
  bool caught = false;
  std::string by;  // what was seen
};
// Of a fault that can show. `seed`: of the directed workload's tokens. Throws Error::internal where the same is wrong without
// the fault.
FaultVerdict catch_fault(const ServingWorkload& workload, const ServingFault& fault, std::uint64_t seed = 0);

}  // namespace assay
