// assay inspect FILE|DIR: what a checkpoint holds, from its headers alone.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_inspect(CLI::App& program, Action& action);

}  // namespace assay
