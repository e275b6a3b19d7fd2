// moe_mix's kernels under the emulator: idle experts, ragged groups, fused and interleaved gates.
#include "tests/kernels/cuda/emulated.h"
#include "tests/kernels/cuda/gemm_emulated.h"

namespace assay {
namespace {

void add_moe(Registry& registry, cuda::Machine& machine) {
  cuda::add_moe_kernels(registry, machine, emulated_gemm_launchers());
}

TEST(CudaMoe, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_moe, [](const CaseId& id) { return id.op() == "moe_mix"; }), 10u);
}

}  // namespace
}  // namespace assay
