// From a router's logits to experts and weights, on the device (refimpl/ops/moe_gate.cpp says what it means).
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

struct GateArguments {
  const float* logits = nullptr;
  std::uint64_t stride = 0;
  std::uint32_t tokens = 0, experts = 0, top_k = 1, groups = 1, chosen_groups = 1;
  StoredVector correction;  // [experts]
  bool sigmoid = false;     // else softmax
  bool top_k_first = false, renormalize = false;
  bool pairs = false;  // a group's score: the sum of its two largest, else the largest
  double masked = 0;   // what counts for experts of groups not chosen
  double epsilon = 0, scale = 1;
  bool bfloat16 = false;           // weights are rounded to it
  std::int32_t* chosen = nullptr;  // [tokens, top_k]
  float* weights = nullptr;
  std::uint64_t weights_stride = 0;
};

struct GateShape {
  std::size_t tokens = 0, experts = 0, top_k = 1, groups = 1;
};
// Bytes of shared memory a token, a multiple of 16.
std::size_t gate_bytes(std::size_t experts, std::size_t top_k, std::size_t groups);
LaunchPlan plan_gate(const DeviceLimits& limits, const GateShape& shape);
Edges gate_edges();

struct GateLaunchers {
  void (*gate)(const LaunchPlan&, const GateArguments&, Stream);
};
GateLaunchers device_gate_launchers();  // gate.cu
void add_gate_kernels(Registry& registry, Machine& machine, const GateLaunchers& launchers);

}  // namespace assay::cuda
