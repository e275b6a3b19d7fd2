// `assay compare caches`: what it was asked, and how it says what it found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "core/system/report.h"
#include "kernels/cache_compare/cache_compare.h"
#include "kernels/cache_compare/retrieval.h"

namespace assay {

struct CompareCachesSettings {
  CommonOptions common;
  std::string model, kernels = "reference", precision = "f32", file, html, truth;
  std::vector<std::string> methods;
  std::optional<std::string> prompt, tokens;
  std::size_t context = 0, prefill = 0, windows = 4, trials = 4;  // 0: of the model; half of it
  std::uint64_t seed = 1;
  bool mutants = false;
};

// One method: measured, or why it makes no sense for the model.
struct CacheRow {
  std::string method, refused;
  CutLayers layers;
  CacheReport report;
  RetrievalMap retrieval;
};
struct CacheFindings {
  std::string title, text;
  std::size_t texts = 0, context = 0, prefill = 0;
  RetrievalPlan plan;
  RetrievalMap full_retrieval;
  std::vector<CacheRow> rows;
};

void add_compare_caches(CLI::App& compare, Action& action);
int run_compare_caches(const CompareCachesSettings& settings);
// With --truth: methods against their authors' rules, and with --mutants faults planted in them (caches_rules.cpp).
int run_cache_rules(const CompareCachesSettings& settings, const Output& output);

Json to_json(const CacheFindings& found);
std::string to_page(const CacheFindings& found);
std::string cache_table(const CacheFindings& found);

}  // namespace assay
