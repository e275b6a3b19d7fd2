// Norms on the device, over groups of columns (refimpl/ops/norm.cpp):
//
//   rms_norm     y = x / √(mean(x²) + ε) · w
//   layer_norm   y = (x - mean(x)) / √(var(x) + ε) · w + b
#pragma once

#include <cstdint>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/stored_vector.h"
#include "kernels/registry/edges.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

enum class WeightUse : std::uint8_t { last, inside, one_plus };  // as NormForm
struct RmsNormArguments {
  const float* x = nullptr;
  float* y = nullptr;
  std::uint64_t x_stride = 0, y_stride = 0;  // elements
  std::uint32_t groups = 1;                  // a row
  std::uint32_t group = 1;                   // columns of one
  std::uint64_t count = 0;                   // groups of all rows
  StoredVector weight;                       // [group]
  float epsilon = 0;
  WeightUse use = WeightUse::last;
  bool bfloat16 = false;  // results, and what is multiplied by the weight last, are rounded to bfloat16
};

struct LayerNormArguments {
  const float* x = nullptr;
  float* y = nullptr;
  std::uint64_t x_stride = 0, y_stride = 0;  // elements
  std::uint32_t groups = 1, group = 1;
  std::uint64_t count = 0;
  StoredVector weight, bias;  // [group]; no bias: 0
  float epsilon = 0;
  bool bfloat16 = false;  // results are rounded to bfloat16
};

struct NormShape {
  std::size_t count = 0, group = 1;
};
LaunchPlan plan_rms_norm(const DeviceLimits& limits, const NormShape& shape);
LaunchPlan plan_layer_norm(const DeviceLimits& limits, const NormShape& shape);
Edges row_edges();  // of all kernels that reduce a row

struct NormLaunchers {
  void (*rms_norm)(const LaunchPlan&, const RmsNormArguments&, Stream);
  void (*layer_norm)(const LaunchPlan&, const LayerNormArguments&, Stream);
};
NormLaunchers device_norm_launchers();  // norm.cu
void add_norm_kernels(Registry& registry, Machine& machine, const NormLaunchers& launchers);

}  // namespace assay::cuda
