// What device.cuh's launch() asks of the runtime.
#pragma once

#include "kernels/cuda/launch_plan.h"

namespace assay::cuda {

// Asks the driver for more than 48 KiB of shared memory, where the plan does.
void allow_shared(const void* kernel, const LaunchPlan& plan);
// Throws Error for what a launch was refused with; `status` is cudart's.
void check_launch(const LaunchPlan& plan, int status);

}  // namespace assay::cuda
