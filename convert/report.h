// --report FILE: what a conversion did to every tensor, as JSON (the document of --json) or as one HTML page.
#pragma once

#include "convert/convert.h"
#include "core/system/report.h"

namespace assay {

// By the extension of `file`: .json or .html. Throws Error::usage on any other; check early.
void check_report_name(const fs::path& file);
void write_report(const fs::path& file, const ConversionPlan& plan, const ConvertOptions& options,
                  const fs::path& in, const fs::path& out, const ConvertResult& result);

// The page: no script, nothing fetched.
std::string conversion_page(const ConversionPlan& plan, const fs::path& in, const fs::path& out,
                            const ConvertResult& result);

}  // namespace assay
