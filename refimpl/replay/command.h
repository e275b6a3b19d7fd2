// assay replay TRACE: a recorded workload through the scheduler and the prefix cache.
#pragma once

#include "core/system/command_line.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {

void add_replay(CLI::App& program, Action& action, const KernelSelector& select);

}  // namespace assay
