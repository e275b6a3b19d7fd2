// Faults of speculation that engines were shipped with, 26 to 39 of docs/serving.md, and what shows each.
#pragma once

#include <memory>

#include "refimpl/claims/workload.h"
#include "refimpl/speculation/layer_drafter.h"

namespace assay {

struct ServingFault;
struct FaultVerdict;
std::vector<ServingFault> speculation_faults();

// How a fault of guessing is planted beside ServingParts, and seen.
struct GuessingFault {
  enum class Oracle : std::uint8_t {
    alone,                // each request of a directed workload against itself alone
    law,                  // the law of the text, enumerated
    draft_logits,         // of prediction layers, against those of the whole text read at once
    shared_draft_logits,  // the same, of texts that begin in blocks of others
  };
  Oracle oracle = Oracle::alone;
  std::shared_ptr<const AcceptanceRule> rule = {};
};

// By the law or by draft logits. Throws Error::internal where the drafts are wrong without the fault.
FaultVerdict catch_guessing(const ServingWorkload& workload, const ServingFault& fault);

// The largest difference of what the model's prediction layers say of texts in the engine and of the same texts read at once,
// relative to the largest of a row; through `spoilt` where there is one.
double draft_difference(const ServingWorkload& workload, const LanguageModel& spoilt);

// The same of texts that come one after the other, begin with the same blocks and go on in different ways; and how many of
// their tokens were hit.
struct SharedDrafts {
  double difference = 0;
  std::size_t hit_tokens = 0;
};
SharedDrafts shared_draft_difference(const ServingWorkload& workload, LayerDrafts::Keeping keeping);

}  // namespace assay
