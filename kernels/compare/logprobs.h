// `assay compare logprobs A [B] [--model DIR]`: log-probabilities that engines saved, against each other and against the
// model. Private to logprobs*.cpp, but for the command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "core/system/command_line.h"
#include "core/system/junit.h"
#include "core/system/report.h"
#include "kernels/logprobs/compare.h"
#include "refimpl/tokenizers/token_text.h"

namespace assay {

struct CompareLogprobsSettings {
  CommonOptions common;
  std::string a, b, model, before, precision_a, precision_b, html, junit;
  std::optional<double> limit;
};

// What was compared: B is empty where there was none.
struct ComparedResponses {
  const logprobs::SavedResponses& a;
  const logprobs::SavedResponses* b;
  const logprobs::LogprobComparison& found;
};

void print_logprobs(const Output& output, const CompareLogprobsSettings& settings,
                    const ComparedResponses& compared);
Json to_json(const CompareLogprobsSettings& settings, const ComparedResponses& compared);
// A row each: mean, mean absolute and largest difference, KL, ranks and firsts turned.
void print_figures(const Output& output,
                   const std::vector<std::pair<std::string, const logprobs::PairFigures*>>& rows);
std::string_view status_name(CaseStatus status);  // "passed"
// One side against the model.
void print_side(const Output& output, std::string_view who, const logprobs::SideVerdict& side,
                const logprobs::SavedResponses& saved);
Json side_json(const logprobs::SideVerdict& side, const logprobs::SavedResponses& saved);
// Of one side a test for each of its texts, and one for all together.
std::vector<JunitCase> side_cases(const std::string& suite, const logprobs::SideVerdict& side,
                                  const logprobs::SavedResponses& saved);
JunitCase verdict_case(const std::string& command, CaseStatus status, const std::string& verdict);
std::vector<JunitCase> junit_cases(const ComparedResponses& compared);
// Verdict, figures, and of every text a strip of its tokens coloured by error / budget; without a model by |Δ|. `words` may be
// null: then tokens that were saved by their ids are told as ids.
std::string to_page(const CompareLogprobsSettings& settings, const ComparedResponses& compared,
                    const TextBehindOthers* words);
// The same of sides of one server, each against the model.
struct PageSide {
  std::string name;  // "asked again"
  const logprobs::SavedResponses& saved;
  const logprobs::SideVerdict& verdict;
};
std::string to_page(const std::string& title, const std::string& heading, CaseStatus status,
                    const std::string& verdict, const std::vector<PageSide>& sides,
                    const TextBehindOthers* words);

void add_compare_logprobs(CLI::App& compare, Action& action);

}  // namespace assay
