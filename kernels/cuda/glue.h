// Sums, factors and copies between kernels (kernels/registry/device_glue.h) on a machine of this folder.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cuda/launch_plan.h"
#include "kernels/registry/device_glue.h"

namespace assay::cuda {

class Machine;

// y = a + b, or, with a width, y = a · b[row, column / width].
struct PairArguments {
  const float *a = nullptr, *b = nullptr;
  float* y = nullptr;
  std::uint64_t a_stride = 0, b_stride = 0, y_stride = 0;
  std::uint32_t rows = 0, columns = 0, width = 0;
  bool bfloat16 = false;
};
struct CopyArguments {
  const float* from = nullptr;  // its first column copied
  float* to = nullptr;
  const std::int32_t *from_rows = nullptr, *to_rows = nullptr;  // null: row i
  std::uint64_t from_stride = 0, to_stride = 0;
  std::uint32_t rows = 0, columns = 0;  // of what is written
  std::uint32_t width = 0, count = 0;   // column c comes from c / count · width + c % count
};

struct GlueLaunchers {
  void (*add)(const LaunchPlan&, const PairArguments&, Stream);
  void (*scale)(const LaunchPlan&, const PairArguments&, Stream);
  void (*copy)(const LaunchPlan&, const CopyArguments&, Stream);
};
GlueLaunchers device_glue_launchers();  // glue.cu

LaunchPlan plan_glue(const DeviceLimits& limits, std::size_t rows, std::size_t columns);

std::unique_ptr<DeviceGlue> glue_of(Machine& machine, const GlueLaunchers& launchers);

}  // namespace assay::cuda
