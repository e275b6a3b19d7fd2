// The cases of linear, OpCases' functions of these names.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/harness/case_id.h"

namespace assay {

std::vector<CaseId> linear_grid();
std::vector<CaseId> linear_always();
std::vector<CaseId> linear_at(std::string_view size, std::size_t value);
std::vector<CaseId> linear_perf_grid();

}  // namespace assay
