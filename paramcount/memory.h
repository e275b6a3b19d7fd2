// What a model takes in memory beside its weights: the cache of keys and values, and, as an estimate, the
// activations of a forward pass.
//
//   heads (MHA, GQA, MQA)   kv_heads × (qk_head_dim + v_head_dim) × b   a token and layer
//   latent (MLA)            (kv_lora_rank + rope_head_dim) × b          V is a view of the latent
//   window                  min(context, window) tokens of such a layer are kept
//   shared (DeepSeek V4)    kv_heads × qk_head_dim × b                  keys are values; behind the window one entry
//                                                                       for so many tokens
//   recurrent state         (kernel - 1) × channels × 2 + state × 4     a sequence and layer, however long it is
//   indexer (DSA)           index_head_dim × 1 + 4 × ceil(index_head_dim / 128): FP8 keys with F32 scales
#pragma once

#include <cstdint>
#include <string>

#include "core/model/module_tree.h"

namespace assay {

struct KvCache {
  std::uint64_t per_token = 0;           // while no window is full yet: every layer grows
  std::uint64_t per_token_beyond = 0;    // once windows are full: only the layers that see everything grow
  std::uint64_t indexer_per_token = 0;   // apart: engines may recompute or compress it
  std::uint64_t expanded_per_token = 0;  // MLA as transformers' reference caches it; 0 where there is no MLA
  std::uint64_t state_per_sequence = 0;  // of recurrent layers: of these, the convolutions' last inputs take
  std::uint64_t state_convolutions = 0;  // …so many
  std::uint64_t bytes = 0;  // for context × batch, the indexer's and the states of `batch` sequences included
};

struct KvOptions {
  double bytes_per_value = 2;  // BF16; 1 for FP8 and INT8, 0.5 for FP4
  std::uint64_t context = 4096, batch = 1;
  std::uint64_t tensor_parallel = 1;  // heads are dealt out, and repeated when there are fewer than ranks
  std::uint64_t first_layer = 0, end_layer = UINT64_MAX;  // of a pipeline stage
};
KvCache kv_cache(const ModuleTree& tree, const KvOptions& options);
// Not of a tree that is derived from names and shapes, where no key says how heads share keys.
bool knows_cache(const ModuleTree& tree);
// Likewise not where no key says how many experts a token meets: then what is activated is at most what is counted.
bool knows_activation(const ModuleTree& tree);
// "bf16", "f16", "fp8", "int8", "fp4", "f32" -> bytes of a value; throws Error::usage.
double kv_value_bytes(const std::string& name);

// An estimate, not a count: engines fuse, reuse and pad. The widest moment of one layer for `tokens` tokens
// in BF16 (residual, its norm, the widest pair of projections), and F32 logits for `sequences`.
struct ActivationEstimate {
  std::uint64_t layer = 0, logits = 0, bytes = 0;
  std::string formula;
};
ActivationEstimate activations(const ModuleTree& tree, std::uint64_t tokens, std::uint64_t sequences,
                               std::uint64_t tensor_parallel);

}  // namespace assay
