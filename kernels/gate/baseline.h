// What the gate remembers, and what it holds against it. Private to gate*.cpp.
//
// A baseline is a file in the repository: for each kernel its cases with their error/budget ratios, and the
// properties it kept; the planted faults that were caught. The ledger beside it names the failures that are
// known, each with a reason and a day on which it stops being an excuse.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "kernels/gate/figures.h"
#include "kernels/harness/mutants.h"
#include "kernels/harness/survey.h"

namespace assay {

struct KernelRecord {
  std::map<std::string, double> ratios;           // by case; of those that passed
  std::map<std::string, std::string> properties;  // "batch_invariant" → "yes", "no", "untested"
  // What the kernel declares of its sums, of how many terms each is before it is added in float32, and of its
  // operands; budgets depend on all three. None in baselines of before they were recorded.
  std::optional<double> accumulator_roundoff = {}, promotion_interval = {}, operand_roundoff = {};
  double largest() const;
};
struct Baseline {
  std::map<std::string, KernelRecord> kernels;  // by "linear cpu.gemv"
  std::set<std::string> mutants;                // caught: "linear: one NaN"
  FigureRecords figures;                        // by suite
  bool empty() const { return kernels.empty() && mutants.empty() && figures.empty(); }
};

struct KnownFailure {
  std::string kernel, id;  // as in the reports: "cpu.gemv" or "linear cpu.gemv", "linear:…"
  std::string reason;
  std::string expires;  // "2026-12-31": the last day it holds
};

// Throw Error::input on a file that is not of this kind.
Baseline read_baseline(const std::filesystem::path& file);
std::vector<KnownFailure> read_ledger(const std::filesystem::path& file);
bool is_day(const std::string& text);  // "2026-12-31"
Json to_json(const Baseline& baseline);
Baseline baseline_of(const std::vector<CaseResult>& results, const std::vector<MutantResult>& mutants);

// "worse" or "better" where a ratio drifted, else nothing. It may double or halve: other vector widths add up
// in another order. What lies far below the budget has room to move in before it means anything.
std::string drift_of_ratio(double before, double now);
// The same of a single case, which may move twice as far as the largest of many.
std::string drift_of_case(double before, double now);

// One reason to say no, or (tolerated) one that would be.
struct Deviation {
  // failed, worse, better, changed, property, vanished, unrecorded, missed_mutant, expired,
  // unexpected_pass; error: a part of the gate could not be run to its end
  std::string kind;
  std::string kernel;  // "linear cpu.gemv", or a suite
  std::string id;      // of the case; may be empty
  std::string message;
  bool tolerated = false;
};

// `today` as "2026-11-21".
std::vector<Deviation> deviations(const Baseline& before, const std::vector<CaseResult>& results,
                                  const std::vector<MutantResult>& mutants,
                                  const std::vector<KnownFailure>& ledger, const std::string& today);

// What is measured and the baseline does not know: it is held against nothing. Kernels of a GPU are told and
// tolerated where the baseline knows of none: it was made without one.
std::vector<Deviation> unrecorded(const Baseline& before, const Baseline& now);

std::string kernel_key(const CaseResult& result);  // "linear cpu.gemv"
bool is_of_gpu(std::string_view kernel);           // "linear cuda.gemv", or "cuda.gemv" alone
std::string to_junit(const std::vector<CaseResult>& results, const SuiteResults& suites,
                     const std::vector<Deviation>& found);
std::string to_html(const Baseline& before, const Baseline& now, const std::vector<Deviation>& found,
                    const std::string& verdict);
// "::error title=…::…", as GitHub shows beside a change.
std::string to_annotation(const Deviation& deviation);

}  // namespace assay
