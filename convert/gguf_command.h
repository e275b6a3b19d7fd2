// assay convert, where a GGUF is read or written.
#pragma once

#include "convert/gguf_plan.h"
#include "core/system/report.h"

namespace assay {

int run_gguf(const fs::path& in, const fs::path& out, const ConvertOptions& options, const GgufOptions& gguf,
             ProgressMode progress, const Output& output);

}  // namespace assay
