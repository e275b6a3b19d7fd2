// `assay compare kernels`: what it was asked, what it found, and how it says so. Private to compare*.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "core/system/report.h"
#include "kernels/harness/mutants.h"
#include "kernels/harness/survey.h"
#include "kernels/plugin/options.h"

namespace assay {

struct CompareKernelsSettings {
  CommonOptions common;
  SurveyRequest request;
  std::string device, csv, tune;
  PluginOptions plugins;
  bool list = false, mutants = false, perf = false, verbose = false, dry_run = false;
  int sm = 0;  // of dry_run: this architecture; 0: all that are known
};

// The results of one kernel, all its cases together.
struct KernelSummary {
  std::string op, kernel;
  Device device = Device::cpu;
  std::map<CaseStatus, std::size_t> counts;
  double ratio = 0;  // the largest, and where
  std::string ratio_at;
  Properties properties;     // no: somewhere not kept
  bool unavailable = false;  // runs nothing on this machine
  Roundoffs roundoffs;       // as the kernel declares them
};
std::vector<KernelSummary> summarize(const std::vector<CaseResult>& results);

// "assay compare kernels --kernel '^cpu.gemv$' --case linear:…"
std::string reproducer(const CaseResult& result);

Json to_json(const CaseResult& result);
Json to_json(const KernelSummary& summary);
void print_list(const Output& output, const std::vector<KernelLabel>& kernels);
void print_results(const Output& output, const std::vector<CaseResult>& results, bool all_cases);
std::string to_csv(const std::vector<CaseResult>& results);

Json to_json(const MutantResult& result);
void print_mutants(const Output& output, const std::vector<MutantResult>& results);

int run_compare_perf(const Registry& registry, const CompareKernelsSettings& settings);
// Writes settings.tune (kernels/selection/tuning.h).
int run_compare_tune(const Registry& registry, const CompareKernelsSettings& settings);
int run_compare_plans(const CompareKernelsSettings& settings);
int run_compare_kernels(const CompareKernelsSettings& settings);

}  // namespace assay
