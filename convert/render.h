// A plan and its result, for people and for scripts.
#pragma once

#include "convert/convert.h"
#include "core/system/report.h"

namespace assay {

void render_plan(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 const Output& output);
void render_result(const ConversionPlan& plan, const ConvertResult& result, const Output& output);
// Schema assay.convert/1, or assay.convert-gguf/1 (docs/json.md); `result` is nullptr for a dry run or a refused plan.
Json render_json(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 const ConvertResult* result);

}  // namespace assay
