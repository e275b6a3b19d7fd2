#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_bench(CLI::App& program, Action& action);

}  // namespace assay
