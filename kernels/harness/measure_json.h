// Measures in JSON documents, wherever they come from.
#pragma once

#include "core/system/report.h"
#include "kernels/harness/measure.h"

namespace assay {

Json json_number(double value);  // infinities and NaN as text, which JSON has no numbers for
Json to_json(const ErrorMeasure& measured);

}  // namespace assay
