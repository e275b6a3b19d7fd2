// One side's log-probabilities against the truth: is it off by more than its precision explains?
//
// What may be off is measured, on the very texts, by the plain computation in the stated precision (three orders of
// sums, truth.h). A token's error |ln p - truth| may be
//
//   max(2 × (of mixtures 3 ×) the plain computation's largest error of any token of these texts of which it chose the
//       truth's experts and keys,
//       6 × its root mean square over the vocabulary at this place)
//   + 4 u · (largest |logit| + |ln p|)                               u of float32, in which engines take logarithms
//   + half a step of what was saved
//
// (twice: rule 3 of docs/design.md's budgets; six times: errors of one token in a row of many behave as draws of one
// law, and six times its spread is left by one of a thousand million; three times: of mixtures fewer tokens are looked at,
// and rounding moves the weights of their experts too: of 2,220 tokens of tinylm in bf16 one was 2.6 times off), and the root mean square of 16 tokens and more
// twice the plain computation's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "kernels/harness/measure.h"
#include "kernels/logprobs/figures.h"
#include "kernels/logprobs/truth.h"

namespace assay::logprobs {

// A side's texts, their tokens' ids known, and the truth of each.
struct SideTruths {
  const SavedResponses* saved = nullptr;
  // Of each text: the tokens that stood before its first, which its truth begins with; nullptr: no truth of it.
  std::vector<std::size_t> before;
  std::vector<const TextTruth*> truths;
  std::size_t precision = 0;  // among those of the truths
};

struct JudgedToken {
  std::size_t text = 0, position = 0;  // of the saved text
  double value = 0, truth = 0;
  double error = 0, budget = 0, ratio = 0;
  // What is left of it where the plain computation chose otherwise, whose root mean square has that in it.
  double steady_budget = 0;
  std::optional<std::uint64_t> rank;
  std::uint64_t true_rank = 1;
};

struct SideVerdict {
  CaseStatus status = CaseStatus::passed;
  std::vector<std::string> reasons;  // of a status other than passed
  std::vector<std::string> hints;    // what the errors look like
  std::vector<JudgedToken> tokens;
  PairFigures figures;  // A: truth, B: this side
  double rms = 0, rms_limit = 0;
  double plain_largest = 0;                        // the plain computation's largest error
  std::optional<std::size_t> first_beyond, worst;  // into tokens
  std::size_t beyond = 0;
  bool spread_out = false;  // the root mean square is beyond its limit
  // Routers and indexers whose other choice this side's is (other_choices.h).
  std::vector<std::string> other_experts, other_keys;
};
SideVerdict judge_side(const SideTruths& side, Precision precision);
// Of one token, against a truth.
double error_of(const SavedToken& token, double truth);

// "0, token 137: ln p -3.2, truth -1.1, 40 × its budget of 0.052, rank 3 in place of 1"
std::string describe_token(const JudgedToken& token, const SavedResponses& saved);

// What errors of a kind that engines have shipped look like: a temperature, values of the token behind, bfloat16.
std::vector<std::string> explain_errors(const SideTruths& side, std::span<const JudgedToken> tokens);

}  // namespace assay::logprobs
