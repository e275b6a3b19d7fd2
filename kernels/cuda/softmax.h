// Softmax over rows on the device.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch_plan.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

struct SoftmaxArguments {
  const float* x = nullptr;
  float* y = nullptr;
  std::uint64_t x_stride = 0, y_stride = 0, rows = 0;
  std::uint32_t columns = 0;
  bool bfloat16 = false;
};
struct SoftmaxShape {
  std::size_t rows = 0, columns = 0;
};
LaunchPlan plan_softmax(const DeviceLimits& limits, const SoftmaxShape& shape);

struct SoftmaxLaunchers {
  void (*softmax)(const LaunchPlan&, const SoftmaxArguments&, Stream);
};
SoftmaxLaunchers device_softmax_launchers();  // softmax.cu
void add_softmax_kernels(Registry& registry, Machine& machine, const SoftmaxLaunchers& launchers);

}  // namespace assay::cuda
