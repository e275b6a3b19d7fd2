// What others have of DeepSeek: its latent attention, its indexer, and the whole of V3 inside a model that sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/blocks.h"

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

// V3 with every name behind `prefix` ("language_model.").
void describe_deepseek_v3(ConfigReader& config, ModuleTree& tree, const std::string& prefix);

}  // namespace assay::families
