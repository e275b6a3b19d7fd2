// `assay verify`: options, lines, exit codes.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_verify(CLI::App& program, Action& action);

}  // namespace assay
