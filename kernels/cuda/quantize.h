// Activations to 8 bits on the device: a scale for each block of rows × columns (refimpl/ops/quantize.cpp).
#pragma once

#include <cstdint>

#include "kernels/cuda/launch_plan.h"
#include "kernels/registry/edges.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

enum class Code : std::uint8_t { e4m3, e5m2, i8 };

struct QuantizeArguments {
  const float* x = nullptr;
  std::uint64_t x_stride = 0;
  std::uint32_t rows = 0, columns = 0, block_rows = 1, block_columns = 128, scale_columns = 1;
  std::uint64_t blocks = 0;       // scale_columns a row of blocks
  std::uint8_t* codes = nullptr;  // [rows, columns]
  float* scales = nullptr;
  std::uint64_t scale_pitch = 0;  // not 0: scales of a column of blocks lie on end, columns so far apart
  std::uint32_t* unquantizable = nullptr;  // becomes 1 where a value is NaN or infinite
  Code code = Code::e4m3;
  bool power_of_two = false;
};

struct QuantizeShape {
  std::size_t blocks = 0, block_elements = 0;
};
LaunchPlan plan_quantize(const DeviceLimits& limits, const QuantizeShape& shape);
Edges quantize_edges();

struct QuantizeLaunchers {
  void (*quantize)(const LaunchPlan&, const QuantizeArguments&, Stream);
};
QuantizeLaunchers device_quantize_launchers();  // quantize.cu
void add_quantize_kernels(Registry& registry, Machine& machine, const QuantizeLaunchers& launchers);

}  // namespace assay::cuda
