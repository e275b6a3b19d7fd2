// The CUDA device at hand, over cudart. Built without CUDA, or on a machine without a device, everything here
// works but says so: unavailable() of the machine.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/machine.h"
#include "kernels/registry/model_memory.h"

namespace assay::cuda {

// Device 0 of those that CUDA_VISIBLE_DEVICES leaves; the driver is first asked by unavailable().
Machine& device_machine();

// Its board's name, as the driver gives it; empty without one.
std::string device_board();

// Managed memory of that device (CUDA C++ Programming Guide, "Unified Memory Programming"); null without one.
std::unique_ptr<ModelMemory> managed_memory();

}  // namespace assay::cuda
