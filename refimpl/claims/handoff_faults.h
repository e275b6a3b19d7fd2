// Faults that hand-offs from a prefill to a decoder were shipped with, 41 to 48 of docs/serving.md, planted in ours.
#pragma once

#include <string>
#include <vector>

#include "refimpl/claims/handoff_run.h"

namespace assay {

struct HandoffFault {
  int number = 0;
  std::string shipped_in;
  std::string what;
  HandoffMade made = {};
  HandoffOptions options = {};
  HandedDecoder decoder = {};
  std::size_t new_tokens = 6;
  // Shows in models with several key heads, with prediction layers, with rows of their tokens.
  bool of_heads = false, of_drafts = false, of_rows = false;
};
std::vector<HandoffFault> handoff_faults();
// Empty: the fault can show in this model.
std::string why_not(const HandoffFault& fault, const HandoffModel& with);

// What was seen of it; empty: it was missed. Throws Error::internal where the same is seen without the fault.
std::string catch_handoff_fault(const HandoffModel& with, const HandoffFault& fault);

}  // namespace assay
