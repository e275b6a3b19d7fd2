// `assay run --tp A --pp B --ep C --dp D`: a text by several ranks, processes under mpirun or threads.
#pragma once

#include "core/system/report.h"
#include "refimpl/run_settings.h"

namespace CLI {
class App;
}

namespace assay {

void add_rank_options(CLI::App& command, RankSettings& settings);
// Throws Error::usage for options that ranks have nothing to do with.
void check_rank_options(const RunSettings& settings);
// The exit code. Only the first rank speaks.
int run_on_ranks(const RunSettings& settings, const Output& output);

}  // namespace assay
