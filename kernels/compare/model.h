// `assay compare model`: what it was asked, and how it says what it found. Private to compare*.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "core/system/report.h"
#include "kernels/model_compare/model_compare.h"
#include "kernels/model_compare/model_mutants.h"

namespace assay {

struct CompareModelSettings {
  CommonOptions common;
  std::string model, against;
  std::string kernels = "cpu", against_kernels = "reference";
  std::string precision = "f32", against_precision = "f64";
  std::string variant, file, csv, html;
  std::optional<std::string> prompt, tokens;
  std::optional<std::size_t> limit;  // tokens of the text; not given: 64, or all where it is cut into windows
  std::size_t context = 0, stride = 0, greedy = 16;
  std::size_t tp = 1, pp = 1, ep = 1, dp = 1;  // over how many ranks, against one process
  std::vector<std::string> caches;             // against its own full cache
  bool mutants = false;
  bool over_ranks() const { return tp > 1 || pp > 1 || ep > 1 || dp > 1; }
};

// What the two sides are, in words: "tinylm, f32, cpu kernels".
struct ModelCompareTitle {
  std::string test, reference, text;
};

void add_compare_model(CLI::App& compare, Action& action);

void print_comparison(const Output& output, const ModelComparison& result);
std::string verdict_line(const ModelComparison& result);
Json to_json(const ModelComparison& result);
std::string to_csv(const ModelComparison& result);
std::string to_page(const ModelComparison& result, const ModelCompareTitle& title);

void print_model_mutants(const Output& output, const std::vector<ModelMutantResult>& results);
Json to_json(const ModelMutantResult& result);

}  // namespace assay
