// latent_attention.cuh and latent_product.cuh under the emulator.
#include "kernels/cuda/attention_launch.cuh"
#include "kernels/cuda/latent_launch.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

void add_latent(Registry& registry, cuda::Machine& machine) {
  cuda::add_latent_kernels(registry, machine,
                           {.attention = {.pack = cuda::launch_pack_heads,
                                          .tiles = cuda::launch_latent_attention,
                                          .merge = cuda::launch_attention_merge},
                            .into = cuda::launch_into_latents,
                            .out_of = cuda::launch_out_of_latents});
}

bool is_long(const CaseId& id) {
  return id.number("keys", 1) > 2000;
}

bool is_wide(const CaseId& id) {
  return id.number("rank", 64) == 512;
}
bool is_zero_mean(const CaseId& id) {
  return id.input() == InputKind::zero_mean;
}

TEST(CudaLatent, PassesItsGrid) {
  EXPECT_GT(pass_emulated(90, add_latent, [](const CaseId& id) { return !is_long(id) && !is_wide(id); }),
            20u);
}

// DeepSeek's 576 and 512 columns. Of sm_90 steps are as long as they get, with two of them under way; of
// sm_89 they are short, and in float32 there is one.
TEST(CudaLatent, PassesAtFullWidth) {
  for (const int sm : {89, 90})
    EXPECT_GT(pass_emulated(sm, add_latent,
                            [](const CaseId& id) { return !is_long(id) && is_wide(id) && is_zero_mean(id); }),
              8u);
}

TEST(CudaLatent, PassesInPieces) {
  EXPECT_GT(pass_emulated(90, add_latent, [](const CaseId& id) { return is_long(id) && is_zero_mean(id); }),
            1u);
}

}  // namespace
}  // namespace assay
