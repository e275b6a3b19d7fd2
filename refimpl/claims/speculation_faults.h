// Faults of speculation that engines were shipped with, 26 to 39 of docs/serving.md, and what shows each.
#pragma once

#include <memory>
#include <optional>

#include "refimpl/claims/workload.h"
#include "refimpl/speculation/layer_drafter.h"

namespace assay {

struct ServingFault;
struct FaultVerdict;
struct Schedule;
std::vector<ServingFault> speculation_faults();

// How a fault of guessing is planted beside ServingParts, and looked for.
struct GuessingFault {
  enum class Oracle : std::uint8_t {
    none,
    alone,                // each request against itself alone
    law,                  // the law of the text, enumerated
    stop,                 // as alone, of a stop in the middle of a step
    draft_logits,         // of prediction layers, against those of the whole text read at once
    shared_draft_logits,  // the same, of texts that begin in blocks of others
  };
  Oracle oracle = Oracle::none;
  std::shared_ptr<const AcceptanceRule> rule = {};
  TreeShape shape = {1, 1, 1};
  bool in_trees = false, spoils_draft = false;
};

// The schedule with guesses in which the fault can show.
Schedule guessing(const GuessingFault& fault, const ServingWorkload& workload, Schedule schedule);
// By the law or by draft logits; none: not this fault's oracle.
std::optional<FaultVerdict> catch_guessing(const ServingWorkload& workload, const ServingFault& fault);
// Can the fault show in this model?
bool shows_in(const GuessingFault& fault, const LanguageModel& model);

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
