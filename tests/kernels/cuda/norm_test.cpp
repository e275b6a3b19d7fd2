// Kernels that reduce a row, and the gate, under the emulator.
#include "kernels/cuda/norm.cuh"

#include "kernels/cuda/gate.cuh"
#include "kernels/cuda/softmax.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

TEST(CudaNorm, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89,
                          [](Registry& registry, cuda::Machine& machine) {
                            cuda::add_norm_kernels(registry, machine, {.rms_norm = cuda::launch_rms_norm});
                          }),
            90u);
}

TEST(CudaSoftmax, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89,
                          [](Registry& registry, cuda::Machine& machine) {
                            cuda::add_softmax_kernels(registry, machine, {.softmax = cuda::launch_softmax});
                          }),
            20u);
}

TEST(CudaGate, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89,
                          [](Registry& registry, cuda::Machine& machine) {
                            cuda::add_gate_kernels(registry, machine, {.gate = cuda::launch_gate});
                          }),
            100u);
}

}  // namespace
}  // namespace assay
