#pragma once

#include "core/system/command_line.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {

// assay run MODEL -p TEXT; `kernels` are the sets that --kernels offers.
void add_run(CLI::App& program, Action& action, const KernelSets& kernels);

}  // namespace assay
