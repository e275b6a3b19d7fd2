// `assay gate`, as a subcommand of the program.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_gate(CLI::App& program, Action& action);

}  // namespace assay
