// rms_norm.cuh under the emulator.
#include "kernels/cuda/norm.cuh"

#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

void add_norms(Registry& registry, cuda::Machine& machine) {
  cuda::add_norm_kernels(registry, machine, {.rms_norm = cuda::launch_rms_norm});
}

TEST(CudaNorm, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_norms), 90u);
}

}  // namespace
}  // namespace assay
