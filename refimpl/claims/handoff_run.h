// A text whose prompt is read by one engine and which another writes, held against the same text of one engine.
#pragma once

#include <memory>
#include <string>

#include "refimpl/claims/workload.h"
#include "refimpl/handoff/prefill.h"
#include "refimpl/handoff/takeover.h"

namespace assay {

struct HandedDecoder {
  std::size_t block_tokens = 16;
  SpeculationOptions speculation = {};
  ServingParts parts = {};
  bool cancel = false;  // the text is given up behind the decoder's first step
};

struct HandedRun {
  Generation made;
  LogitRows rows;  // that tokens were chosen from; of a first token that came as its id there are none
  ServingCounts counts;
  HandoffSent sent;
  std::string refused;   // why the decoder took none of it; empty: it did
  std::size_t held = 0;  // blocks at the end
  bool checked = false;  // the decoder's blocks, against the prefill's cache
};
// Both sides in this process, one after the other.
HandedRun hand_over_and_write(const HandoffModel& with, const ServingRequest& request,
                              const HandoffOptions& options, const HandedDecoder& decoder,
                              const HandoffMade& made = {});

// The decoder's side alone, of what one or several prefill ranks send.
void take_and_write(const HandoffModel& with, const std::vector<PartSource*>& sources,
                    const ServingRequest& request, const HandedDecoder& decoder, const HandoffMade& made,
                    HandedRun& run);

// The same text of one engine, guesses and all.
HandedRun write_uncut(const HandoffModel& with, const ServingRequest& request, const HandedDecoder& decoder);

// What is other than of one engine; empty: nothing.
std::string difference(const HandedRun& uncut, const HandedRun& handed);

}  // namespace assay
