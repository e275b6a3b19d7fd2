// Matrix products under the emulator: every element type, both tensor units, ragged shapes, no rows, one
// input, experts in groups, and all that examine() demands.
#include <algorithm>

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/gemm_mma_launch.cuh"
#include "kernels/cuda/gemm_prepare_launch.cuh"
#include "kernels/cuda/gemm_wgmma_launch.cuh"
#include "kernels/cuda/gemv_launch.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

cuda::GemmLaunchers emulated_launchers() {
  using namespace cuda;
  return {.mma = launch_mma,
          .wgmma = launch_wgmma,
          .gemv = launch_gemv,
          .planes = launch_planes,
          .quantize_fp8 = launch_quantize_fp8,
          .quantize_int8 = launch_quantize_int8,
          .align_rows = launch_align_rows,
          .unpack_q8_0 = launch_unpack_q8_0,
          .activation = launch_activation,
          .combine = launch_combine};
}

void add_linear(Registry& registry, cuda::Machine& machine) {
  cuda::add_linear_kernels(registry, machine, emulated_launchers());
}
void add_moe(Registry& registry, cuda::Machine& machine) {
  cuda::add_moe_kernels(registry, machine, emulated_launchers());
}

// Small enough for the emulator, which computes whole tiles.
bool is_small(const CaseId& id) {
  const auto up = [](std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; };
  return up(id.number("m", 1), 64) * up(id.number("n", 1), 128) * id.number("k", 1) <= 64 * 384 * 600;
}

// One of `turns` cases, whichever: of those that differ in their inputs only.
bool in_turn(const CaseId& id, std::size_t turns) {
  std::size_t hash = 0;
  for (const char c : id.text()) hash = hash * 31 + static_cast<unsigned char>(c);
  return hash % turns == 0;
}

std::size_t pass_linear(int sm, const std::function<bool(const CaseId&, std::string_view act)>& wanted) {
  return pass_emulated(sm, add_linear, [&](const CaseId& id) {
    return id.op() == "linear" && is_small(id) && wanted(id, id.word("act", "f32"));
  });
}

TEST(CudaGemm, QuantizedActivationsOnHopper) {
  EXPECT_GT(pass_linear(90, [](auto&, auto act) { return act == "fp8-block" || act == "int8"; }), 45u);
}
TEST(CudaGemm, QuantizedActivationsOnAda) {
  EXPECT_GT(pass_linear(89, [](auto&, auto act) { return act == "fp8-block" || act == "int8"; }), 35u);
}
TEST(CudaGemm, Bfloat16Activations) {
  EXPECT_GT(pass_linear(90, [](auto&, auto act) { return act == "bf16"; }), 12u);
}
TEST(CudaGemm, Float32ActivationsTimesStoredWeights) {
  EXPECT_GT(pass_linear(89, [](auto& id, auto act) { return act == "f32" && in_turn(id, 3); }), 40u);
}
TEST(CudaGemm, Experts) {
  // Of each form a small one, and what is special: fused gates, all experts for all tokens, one expert.
  const auto wanted = [](const CaseId& id) {
    const bool ragged = id.number("hidden") < 64, few = id.number("m") <= 1;
    return id.op() == "moe_mix" && (ragged || (few && in_turn(id, 2)));
  };
  EXPECT_GT(pass_emulated(89, add_moe, wanted), 8u);
}

}  // namespace
}  // namespace assay
