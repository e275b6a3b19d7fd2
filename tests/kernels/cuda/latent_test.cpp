// latent_attention.cuh and latent_product.cuh under the emulator.
#include "kernels/cuda/attention_launch.cuh"
#include "kernels/cuda/latent_launch.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

void add_latent(Registry& registry, cuda::Machine& machine) {
  cuda::add_latent_kernels(
      registry, machine,
      {.attention = {.tiles = cuda::launch_latent_attention, .merge = cuda::launch_attention_merge},
       .into = cuda::launch_into_latents,
       .out_of = cuda::launch_out_of_latents});
}

bool is_long(const CaseId& id) {
  return id.number("keys", 1) > 2000;
}

// Of sm_90 steps are as long as they get and there are two of them under way; of sm_89 there is one.
TEST(CudaLatent, PassesItsGrid) {
  for (const int sm : {89, 90})
    EXPECT_GT(pass_emulated(sm, add_latent, [](const CaseId& id) { return !is_long(id); }), 40u);
}

TEST(CudaLatent, PassesInPieces) {
  EXPECT_GT(pass_emulated(90, add_latent, is_long), 2u);
}

}  // namespace
}  // namespace assay
