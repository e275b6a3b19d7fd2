// `assay check DIR`: the whole examination, one verdict.
#pragma once

#include "core/system/command_line.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {

// `select` makes the kernels that the forward pass is compared on.
void add_check(CLI::App& program, Action& action, const KernelSelector& select);

}  // namespace assay
