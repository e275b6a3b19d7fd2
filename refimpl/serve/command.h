#pragma once

#include "core/system/command_line.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {

// assay serve MODEL; `select` knows the kernels that --kernels names.
void add_serve(CLI::App& program, Action& action, const KernelSelector& select);

}  // namespace assay
