// The stage `numbers`: values that no quantizer and no training writes, by what one pass over the bytes
// counted.
#pragma once

#include "cli/check/stages.h"
#include "verify/verify.h"

namespace assay {

Stage judge_all_numbers(const VerifyReport& report, const CheckSettings& settings);

}  // namespace assay
