// `assay compare model MODEL --tp N …`: one process against as many ranks, tap by tap.
#pragma once

#include <span>
#include <string>

#include "core/system/report.h"
#include "kernels/compare/model.h"

namespace assay {

// The exit code. `tokens` is the text, `about` what it is.
int run_compare_ranks(const CompareModelSettings& settings, std::span<const TokenId> tokens,
                      const std::string& about, const Output& output);

}  // namespace assay
