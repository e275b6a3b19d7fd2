// The options of `assay run`, and which of them go together.
#pragma once

#include "refimpl/run_settings.h"

namespace CLI {
class App;
}

namespace assay {

void add_run_options(CLI::App& command, RunSettings& settings);
// Throws Error::usage for options that exclude one another, or say how something is done that was not asked for; reads those that
// are texts of their own.
void check_run_options(RunSettings& settings);

}  // namespace assay
