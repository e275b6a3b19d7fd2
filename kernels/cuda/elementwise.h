// What touches each element once, on the device: rope, activations alone and gated, 8 bits to float.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/quantize.h"
#include "kernels/registry/edges.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

// The pair (a, b) of a head becomes (a c - b s, b c + a s), in place.
struct RopeArguments {
  float* x = nullptr;
  const float *cos = nullptr, *sin = nullptr;  // [tokens, pairs]
  std::uint64_t x_stride = 0, cos_stride = 0, sin_stride = 0;
  std::uint32_t tokens = 0, heads = 1, head_dim = 0, offset = 0, pairs = 0;
  bool halves = true;  // pairs are (i, i + pairs), else (2i, 2i + 1)
  bool bfloat16 = false;
};

enum class Curve : std::uint8_t { silu, gelu, gelu_tanh, relu, gpt_oss };  // as Activation
struct ActivationArguments {
  const float* x = nullptr;   // the gate, where there is an `up`
  const float* up = nullptr;  // null: the activation alone
  float* y = nullptr;
  std::uint64_t x_stride = 0, up_stride = 0, y_stride = 0;
  std::uint32_t rows = 0, columns = 0;
  std::uint32_t step = 1;  // from column to column of x and up: 2 where gate and up take turns
  Curve curve = Curve::silu;
  float limit = 0;  // gpt_oss
  bool bfloat16 = false;
};

struct DequantizeArguments {
  const std::uint8_t* codes = nullptr;  // [rows, columns]
  const float* scales = nullptr;
  float* y = nullptr;
  std::uint64_t y_stride = 0;
  std::uint32_t rows = 0, columns = 0, block_rows = 1, block_columns = 1, scale_columns = 1;
  Code code = Code::e4m3;
  bool bfloat16 = false;
};

struct ElementwiseShape {
  std::size_t rows = 0, columns = 0;  // of what a thread computes one of
};
LaunchPlan plan_rope(const DeviceLimits& limits, const ElementwiseShape& pairs);
LaunchPlan plan_activation(const DeviceLimits& limits, const ElementwiseShape& shape);
LaunchPlan plan_convert(const DeviceLimits& limits, const ElementwiseShape& shape);
LaunchPlan plan_epilogue(const DeviceLimits& limits, const ElementwiseShape& shape);
LaunchPlan plan_dequantize(const DeviceLimits& limits, const ElementwiseShape& shape);
// `columns`: what a case calls the width of a row.
Edges element_edges(std::string_view columns);

struct ElementwiseLaunchers {
  void (*rope)(const LaunchPlan&, const RopeArguments&, Stream);
  void (*activation)(const LaunchPlan&, const ActivationArguments&, Stream);
  void (*dequantize)(const LaunchPlan&, const DequantizeArguments&, Stream);
};
ElementwiseLaunchers device_elementwise_launchers();  // elementwise.cu
void add_elementwise_kernels(Registry& registry, Machine& machine, const ElementwiseLaunchers& launchers);

}  // namespace assay::cuda
