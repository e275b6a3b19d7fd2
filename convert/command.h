#pragma once

#include "core/system/command_line.h"

namespace assay {

// assay convert IN OUT --to SPEC; assay convert --equal A B
void add_convert(CLI::App& program, Action& action);

}  // namespace assay
