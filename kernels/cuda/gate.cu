#include "kernels/cuda/gate.cuh"

namespace assay::cuda {

GateLaunchers device_gate_launchers() {
  return {.gate = launch_gate};
}

}  // namespace assay::cuda
