// `assay compare endpoint URL --model DIR`: a server's log-probabilities against its model's, asked alone, asked again and all
// at once.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_compare_endpoint(CLI::App& compare, Action& action);

}  // namespace assay
