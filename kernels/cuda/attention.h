// Attention on the device: prefill and decoding over a paged cache, and absorbed MLA.
//
//   flash_attention.cuh   tiles of rows over all keys, or over a piece of them
//   decode_attention.cuh  few rows, whose keys and values go from memory into registers
//   attention_merge.cuh   the pieces put together
//   mla_attention.cuh  MLA's shared row of the cache, read once for all heads
//   mla_product.cuh    the products before and behind it
//   packed_heads.cuh      rows of heads, each on 16 bytes
//   plan_attention.h      who does what
#pragma once

#include "kernels/cuda/plan_attention.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

struct AttentionLaunchers {
  void (*pack)(const LaunchPlan&, const PackArgs&, unsigned element_bytes, Stream);
  // element_bytes: 4 float32, 2 bfloat16
  void (*tiles)(const AttentionPlan&, const AttentionArgs&, unsigned element_bytes, Stream);
  void (*merge)(const AttentionPlan&, const AttentionArgs&, Stream);
};
struct MlaLaunchers {
  AttentionLaunchers attention;  // tiles: of latents
  // q · W_k, to packed latent queries; mixed · W_v, to float32.
  void (*into)(const LaunchPlan&, const MlaProductArgs&, unsigned element_bytes, Stream);
  void (*out_of)(const LaunchPlan&, const MlaProductArgs&, unsigned element_bytes, Stream);
};
AttentionLaunchers device_attention_launchers();  // attention.cu
MlaLaunchers device_mla_launchers();              // mla.cu
MlaLaunchers device_expanded_launchers();

void add_attention_kernels(Registry& registry, Machine& machine, const AttentionLaunchers& launchers);
void add_mla_kernels(Registry& registry, Machine& machine, const MlaLaunchers& launchers);
// Naive MLA; of `launchers` the attention of whole heads.
void add_expanded_kernels(Registry& registry, Machine& machine, const MlaLaunchers& launchers);

}  // namespace assay::cuda
