// `assay run --tp N … --handoff-to` and `--handoff-from`: ranks read the prompt and feed one process or other ranks, or go on from
// what these read. Of copies (--dp) the first has the text, and the others go along with their experts.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "core/system/report.h"
#include "refimpl/ranks/ranked_model.h"
#include "refimpl/run_handoff.h"

namespace assay {

// Throws Error::usage for more than one prompt.
void check_rank_prompts(const RunSettings& settings, std::size_t prompts);

class RankHandoff {
 public:
  RankHandoff(const RunSettings& settings, OpenModel& open) : settings_(settings), open_(open) {}

  // Before the ranks, in each process: of --handoff-to the one request.
  void begin(const std::vector<GenerationRequest>& requests);
  // At each rank, at the same time.
  void be_rank(RankedModel& ranked);
  // What the first rank has to say, behind all of them.
  void tell(const Output& output);

 private:
  void send(RankedModel& ranked, const HandoffModel& with);
  void take(RankedModel& ranked, const HandoffModel& with);

  const RunSettings& settings_;
  OpenModel& open_;
  std::mutex mutex_;                   // ranks may be threads, and the model that they share is one
  std::optional<HandoffModel> whole_;  // the files' digests are made once, for all ranks of the process
  GenerationRequest request_;
  std::vector<TokenId> ids_;
  FinishReason reason_ = FinishReason::length;
  bool as_text_ = false;
  Json document_;
};

}  // namespace assay
