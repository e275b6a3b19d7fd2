// What render.h tells, of a plan that reads or writes a GGUF: there the types of the tensors are what is of interest.
#pragma once

#include "convert/convert.h"
#include "core/system/report.h"

namespace assay {

void render_gguf_plan(const ConversionPlan& plan, const fs::path& out, const Output& output);
void render_gguf_result(const ConversionPlan& plan, const ConvertResult& result, const Output& output);
// Schema assay.convert-gguf/1 (docs/json.md).
Json gguf_json(const ConversionPlan& plan, const fs::path& out, const ConvertResult* result);

}  // namespace assay
