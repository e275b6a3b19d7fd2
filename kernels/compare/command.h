// `assay compare`, as a subcommand of the program.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_compare(CLI::App& program, Action& action);

}  // namespace assay
