// What others have of DeepSeek: its latent attention, its indexer, and the whole of V3 inside a model that sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/blocks.h"
#include "core/model/hyperparameters.h"

namespace assay::families {

struct LatentDefaults {
  std::optional<std::uint64_t> q_rank = 1536;
  std::uint64_t kv_rank = 512, nope_dim = 128, rope_dim = 64, v_dim = 128;
};
blocks::LatentAttention read_latent_attention(ConfigReader& config, const blocks::Decoder& d,
                                              const LatentDefaults& of_class);

// DeepSeek-V3.2-Exp, inference/model.py (Indexer): score[t, s] = Σ_h w_h · relu(q_h · k_s), the best top_k keys attend.
struct Indexer {
  Quantity heads, head_dim;
  std::uint64_t top_k = 0;
  void note(AttentionGeometry& g) const;
};
Indexer read_indexer(ConfigReader& config, std::uint64_t heads);
Module indexer(const blocks::LatentAttention& a, const Indexer& i, ConfigReader& config);
// Of queries made by the matrix `queries` of so wide an input: the latent, or the hidden state as the keys are
// (modeling_naive_n05_flash.py, Mistral Large 4).
Module indexer(std::string queries, const Quantity& of, const Quantity& hidden, const Indexer& i);

// Hyperparameters of those whose experts are chosen as V3's are, and whose class says so:
struct DeepseekForward {
  std::uint64_t groups = 8, chosen_groups = 4;  // n_group, topk_group
  double routed_scale = 2.5;                    // routed_scaling_factor
  std::size_t context = 4096;                   // max_position_embeddings
  double epsilon = 1e-6;                        // rms_norm_eps
  bool pairs_by_config = true;                  // rope_interleave is read; else it is always so
  bool rotates = true;                          // one rope for all layers; else the caller reads its own
};
Hyperparameters read_deepseek_forward(ConfigReader& config, const ModuleTree& tree,
                                      const DeepseekForward& of_class);

// V3 with every name behind `prefix` ("language_model.").
void describe_deepseek_v3(ConfigReader& config, ModuleTree& tree, const std::string& prefix);

}  // namespace assay::families
