// assay convert, where a GGUF is read or written.
#pragma once

#include "convert/gguf_plan.h"
#include "core/system/report.h"

namespace assay {

// `report`: a .json to write what --json gives to; empty: none.
int run_gguf(const fs::path& in, const fs::path& out, const ConvertOptions& options, const GgufOptions& gguf,
             const fs::path& report, ProgressMode progress, const Output& output);

}  // namespace assay
