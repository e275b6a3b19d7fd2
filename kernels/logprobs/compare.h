// Saved responses against each other, and against a model: who is wrong?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/logprobs/align.h"
#include "kernels/logprobs/judge.h"
#include "refimpl/models/weights.h"

namespace assay::logprobs {

struct LogprobRequest {
  const SavedResponses* a = nullptr;
  const SavedResponses* b = nullptr;  // may be null: A against the model alone
  const Weights* model = nullptr;     // may be null: A against B alone
  Precision precision_a = Precision::bf16, precision_b = Precision::bf16;
  std::vector<TokenId> before;  // what stands before texts that do not begin at their beginning
  std::optional<double> limit;  // on |B - A|, nats
  int jobs = 1;
};

struct LogprobComparison {
  CaseStatus status = CaseStatus::passed;
  std::string verdict;  // "OK: …", "FAILED: B is wrong: …"
  std::vector<std::string> notes;
  // A and B, where there are both.
  std::optional<MatchedPairs> matched;
  PairFigures figures;
  RatioFigures ratios;
  std::optional<SideVerdict> a, b;  // against the model
};

// Throws Error::input where the model cannot be run, or the texts do not fit it.
LogprobComparison compare_logprobs(const LogprobRequest& request);

}  // namespace assay::logprobs
