// `compare logprobs` and `compare endpoint` as tests: a text each, and a side as a whole.
#include "kernels/compare/logprobs.h"

namespace assay {
namespace {

using namespace logprobs;

// What proved nothing is no failure: it could not be run to its end.
JunitCase::Said case_said(CaseStatus status, std::string message) {
  const bool failed = status == CaseStatus::failed;
  return {failed ? JunitOutcome::failure : JunitOutcome::error, failed ? "failed" : "mistrusted",
          std::move(message)};
}

}  // namespace

std::vector<JunitCase> side_cases(const std::string& suite, const SideVerdict& side,
                                  const SavedResponses& saved) {
  std::vector<JunitCase> cases;
  for (const SavedText& text : saved.texts) cases.push_back({suite, text.name, {}});
  for (const JudgedToken& token : side.tokens) {
    JunitCase& text = cases[token.text];
    if (token.ratio > 1 && text.said.empty())
      text.said.push_back(case_said(CaseStatus::failed, describe_token(token, saved)));
  }
  JunitCase& whole = cases.emplace_back(JunitCase{suite, "as a whole", {}});
  if (side.status == CaseStatus::passed) return cases;
  for (const std::string& reason : side.reasons) whole.said.push_back(case_said(side.status, reason));
  return cases;
}

JunitCase verdict_case(const std::string& command, CaseStatus status, const std::string& verdict) {
  JunitCase one = {command, "verdict", {}};
  if (status != CaseStatus::passed) one.said.push_back(case_said(status, verdict));
  return one;
}

std::vector<JunitCase> junit_cases(const ComparedResponses& compared) {
  const LogprobComparison& found = compared.found;
  std::vector<JunitCase> cases;
  if (found.a) cases = side_cases("A", *found.a, compared.a);
  if (found.b) {
    std::vector<JunitCase> of_b = side_cases("B", *found.b, *compared.b);
    std::move(of_b.begin(), of_b.end(), std::back_inserter(cases));
  }
  cases.push_back(verdict_case("compare logprobs", found.status, found.verdict));
  return cases;
}

}  // namespace assay
