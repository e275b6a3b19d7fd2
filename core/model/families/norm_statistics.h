// What a batch norm has seen in training: checkpoints hold it beside the norm's weight and bias, and no model counts it.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/module_tree.h"

namespace assay::families {

// "norm.running_mean" and "norm.running_var" [width], "norm.num_batches_tracked" [].
void add_norm_statistics(Module& module, const std::string& norm, std::uint64_t width);

}  // namespace assay::families
