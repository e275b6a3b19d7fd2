// DeepSeek-V4's attention: one head of keys that are values, which every query head reads; a short window of tokens, and
// behind it entries that stand for 4 tokens (of which an indexer chooses) or for 128 (all of them).
//
//   q = rope(norm_h(W_qb norm(W_qa x)))     kv = rope(norm(W_kv x)), the last rope_dim elements of a head rotating
//   o = W_ob [W_oa,g rope⁻¹(attention(q, kv ∪ entries))_g]          in groups g of heads, with a sink a head
//
// What the cache keeps of a token: kv, and what its compressors are made of, [value | gate] each, so that entries are
// made anew in each step and tokens can be taken back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refimpl/models/rope_table.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/step/batch.h"
#include "refimpl/step/taps.h"

namespace assay {

struct CompressedSettings {
  std::size_t heads = 0, head_dim = 0, rope_dim = 0, window = 0;
  std::size_t index_heads = 0, index_dim = 0, top_k = 0;
  double epsilon = 1e-6;
  RopeRule rope, compressed_rope;  // of layers with the window alone, and of the others
};

struct Compressor {
  WeightView value, gate, position, norm;
  std::size_t ratio = 1;
  bool overlapping = false;
  std::size_t width() const { return value.outputs(); }  // of what is kept of a token, twice: value and gate
  std::size_t entry() const { return overlapping ? width() / 2 : width(); }
};

struct CompressedAttention {
  WeightView q_a, q_a_norm, q_b, kv, kv_norm, output_a, output_b, sinks;
  std::size_t ratio = 0;
  std::optional<Compressor> compressor, index_compressor;
  WeightView index_q, index_weights;

  // path: what its names begin with, "layers.3.attn.".
  static CompressedAttention read(const Weights& weights, const std::string& path, std::size_t ratio);
  CacheWidth cache_width(const CompressedSettings& s) const;
  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, const CompressedSettings& s,
                 Ops& ops, const TapScope& at) const;
};

}  // namespace assay
