// `assay compare dumps`: what it was asked, and how it says what it found. Private to compare*.cpp.
#pragma once

#include <optional>
#include <string>

#include "core/system/command_line.h"
#include "core/system/report.h"
#include "kernels/dumps/compare.h"

namespace assay {

struct CompareDumpsSettings {
  CommonOptions common;
  dumps::CompareRequest request;
  std::string ref, test, map, yardstick;
  std::optional<double> rtol;
  std::string csv, html;
  bool all = false;
};

std::string verdict_line(const dumps::DumpComparison& found);
void print_comparison(const Output& output, const CompareDumpsSettings& settings,
                      const dumps::DumpComparison& found);
Json to_json(const CompareDumpsSettings& settings, const dumps::DumpComparison& found);
std::string to_csv(const dumps::DumpComparison& found);
std::string to_page(const CompareDumpsSettings& settings, const dumps::DumpComparison& found);
// "3, 17-20 and 2 more": which tokens of `heat` exceed 1.
std::string tokens_over(const std::vector<double>& heat);

void add_compare_dumps(CLI::App& compare, Action& action);
int run_compare_dumps(const CompareDumpsSettings& settings);

}  // namespace assay
