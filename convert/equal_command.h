// assay convert --equal: the comparison as lines, JSON and an exit code.
#pragma once

#include "convert/equal.h"
#include "core/system/report.h"

namespace assay {

int run_equal(const fs::path& a, const fs::path& b, const EqualOptions& options, ProgressMode mode,
              const Output& output);

}  // namespace assay
