// What the kernels between and behind the grouped products of a mixture of experts are told (moe.cuh).
#pragma once

#include <cstdint>

namespace assay::cuda {

enum class Act : std::uint8_t { silu, gelu, gelu_tanh, relu, gpt_oss };  // as Activation

// out[r, c] = act(gate) · up, gate being column gate_column + c · step of row r of `x`, and up likewise.
struct GateArgs {
  const float* x = nullptr;
  float* out = nullptr;
  std::int64_t rows = 0, x_pitch = 0, out_pitch = 0;  // elements
  std::int32_t columns = 0, gate_column = 0, up_column = 0, step = 1;
  Act act = Act::silu;
  float limit = 0;        // gpt_oss
  bool bfloat16 = false;  // rounded after each stage, as refimpl/ops/activation.cpp does
};

// y[t] = Σⱼ weights[t, j] · x[rows_of[t, j]], in the order of j: that of the experts' numbers.
struct CombineArgs {
  const float* x = nullptr;
  const float* weights = nullptr;
  const std::int32_t* rows_of = nullptr;
  float* y = nullptr;
  std::int64_t x_pitch = 0, y_pitch = 0;  // elements
  std::int32_t tokens = 0, visits = 0, columns = 0;
  bool bfloat16 = false;
};

}  // namespace assay::cuda
