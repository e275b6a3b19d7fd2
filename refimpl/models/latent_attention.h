// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 §2.1): what a token keeps is c = norm(W_DKV x) and one
// rotary key part. With an indexer (DeepSeek-V3.2) it keeps an index key as well, and a query attends to the best
// keys only; in GLM-5.2 some layers have no indexer and take the choice of the last that has. In Mistral Large 4 some layers
// rotate nothing, and some have no latent and attend to that of another.
#pragma once

#include <cstddef>
#include <optional>

#include "refimpl/models/key_pools.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/models/score_scale.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/step/batch.h"
#include "refimpl/step/taps.h"

namespace assay {

struct LatentSettings {
  std::size_t heads = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
  double epsilon = 1e-6;  // of the norms on queries' and keys' latents
  double scale = 1;       // of attention scores
  RopeLayout layout = RopeLayout::interleaved;
  MlaForm form = MlaForm::absorbed;
  double q_factor = 1, latent_factor = 1;  // LongCat: √(hidden / rank), of queries and of normed latents
  double q_latent_factor = 1;  // dots3-note: likewise, of the normed latents that queries are made of
  std::size_t window = 0;      // tokens that a query sees, itself included; 0: all
  std::optional<Hyperparameters::Temperature> temperature = {};  // Mistral Small 4: of queries
  // Of the indexer. 0 of top_k: every key is attended to.
  std::size_t index_heads = 0, index_dim = 0, top_k = 0;
  RopeLayout index_layout = RopeLayout::half_split;
  bool index_rope_last = false;  // the last elements of an indexer's heads rotate, not the first (HY4)
  double index_epsilon = 1e-6;
  std::size_t cache_width() const { return kv_rank + rope_dim; }
  CacheWidth cache_row() const { return {.key_width = cache_width(), .window = window, .latent = kv_rank}; }
};

// From the shapes in the tree; the rest is the model's. Of all layers that rotate, where these are alike, or of those of one
// geometry.
LatentSettings latent_settings(const ModuleTree& tree);
LatentSettings latent_settings(const AttentionGeometry& geometry);

struct KeyIndexer {
  WeightView q, k, k_norm, k_norm_bias, weights;
  std::optional<KeyPools> pools;  // GLM-5.3-Flash: these are scored, not keys
  // Mistral Large 4: queries are of the layer's input, normed.
  WeightView q_norm, q_norm_bias;
  ScoreScale score_scale;

  // Of what it keeps of a token.
  std::size_t width(const LatentSettings& s) const { return (pools ? 2 : 1) * s.index_dim; }
  // Keys that a query is given at most.
  std::size_t most_keys(const LatentSettings& s) const { return s.top_k + (pools ? pools->tokens() - 1 : 0); }
  static std::optional<KeyIndexer> find(const Weights& weights, std::size_t layer);
  // Puts the index keys beside the latents: SequenceCache::values of the layer; of a layer without latents its keys.
  KeyChoice choose(const Matrix& x, const Matrix& q_latent, const Matrix& latents, std::size_t layer,
                   const Batch& batch, const RopeAngles& angles, const LatentSettings& s, Ops& ops,
                   const TapScope& at) const;
};

struct LatentAttention {
  WeightView q;  // V2-Lite: queries straight from x
  // Else through a latent of their own. A.X K2: q_b reads it normed and as it was, and makes of each head queries and a gate
  // of what attention gives.
  WeightView q_a, q_a_bias, q_a_norm, q_b;
  WeightView kv_a, kv_a_bias, kv_a_norm;
  WeightView k_rope_norm;  // dots3-note: of the rotary key part, before it rotates
  // Without kv_a: the layer whose latents are attended to.
  std::size_t reads_layer = 0;
  ScoreScale score_scale;
  WeightView kv_b, k_b, v_b;  // one matrix, or GGUF's two halves
  WeightView output, output_bias;
  WeightView gate;   // Kimi K3: σ of it scales what attention gives
  WeightView sinks;  // HY4: [heads]
  std::optional<KeyIndexer> indexer;

  static LatentAttention read(const Weights& weights, std::size_t layer);
  bool keeps_latents() const { return static_cast<bool>(kv_a); }
  // `angles`: without any, nothing rotates (Kimi Linear). `chosen`: the choice of the last layer that made one; of a model without indexers it is left alone.
  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, const RopeAngles& angles,
                 const LatentSettings& s, KeyChoice& chosen, Ops& ops, const TapScope& at) const;

 private:
  struct Queries {
    Matrix heads;   // [tokens, heads · (nope + rope)]
    Matrix latent;  // [tokens, q_rank], or what an indexer takes in its place
    Matrix gate;    // [tokens, heads · v], where it is made beside them
  };
  Queries queries(const Matrix& x, const Batch& batch, const RopeAngles& angles, const LatentSettings& s,
                  Ops& ops) const;
  Matrix latents(const Matrix& x, const RopeAngles& angles, const LatentSettings& s, Ops& ops,
                 const TapScope& at) const;
};

}  // namespace assay
