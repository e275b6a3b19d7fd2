// `assay gate`, as a subcommand of the program.
#pragma once

#include <vector>

#include "core/system/command_line.h"
#include "kernels/gate/figures.h"

namespace assay {

// `suites`: what is measured beside kernels and planted faults.
void add_gate(CLI::App& program, Action& action, std::vector<GateSuite> suites);

}  // namespace assay
