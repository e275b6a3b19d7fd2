// `assay compare serving`: random workloads served, each request held against itself alone.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_compare_serving(CLI::App& compare, Action& action);

}  // namespace assay
