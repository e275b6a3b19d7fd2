// Softmax attention with heads of one layer: projections, norms of heads, rotation, the cache, what comes after.
#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "refimpl/models/alibi.h"
#include "refimpl/models/block_index.h"
#include "refimpl/models/block_pattern.h"
#include "refimpl/models/differential.h"
#include "refimpl/models/norms.h"
#include "refimpl/models/projection.h"
#include "refimpl/models/relative_attention.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/models/value_experts.h"
#include "refimpl/step/taps.h"

namespace assay {

// What a gate of what attention gives is bent by; softplus: log₂(1 + 2ˣ).
enum class HeadGate : std::uint8_t { sigmoid, silu, softplus, softplus_of_2 };

struct AttentionForm {
  bool norm_after_rope = false;
  bool clipped_after_norm = false;  // clip_qkv
  bool fused_by_key_head =
      false;  // rows of qkv: queries, key and value of the first key head, then of the next
  std::size_t fused_groups =
      1;  // rows of qkv: q, v and k of so many equal groups of heads, one after the other
  BlockIndexForm index = {};
  bool unit_values = false;  // values of each head are normed, without weights
  // Norms of each head, stored apart: with "{layer}", "q" or "k" and the head's number in place of {}.
  std::string_view norm_of_head = {};
  double key_scale = 1;       // before keys are rotated
  bool norms_in_row = false;  // norms of q and k are as wide as all heads, and of each head by itself
  HeadGate gate = HeadGate::sigmoid;
  GateRule value_rule = {};  // of layers with experts of values
  // IQuest-Coder Loop: a layer's gate is not of what attention gives. In passes behind the first it stands between that and
  // what the first one's cache gives: σ(q · w + b) of each head's rotated query.
  bool gated_passes = false;
  std::optional<std::size_t> first_pass = {};
  std::optional<DifferentialForm> differential = {};
  // Muse: queries and keys of each head are normed, without weights, before they rotate, and queries times this.
  std::optional<double> unit_queries = {};
  bool unit_context = false;  // what each head gives is normed, without weights
  SlopeForm slopes = SlopeForm::linear;
  std::optional<BlockPattern> blocks = {};  // Phi-3-small
  std::optional<RelativeForm> relative =
      {};  // Inkling: scores have a bias of the distance, and are scaled by 1/width
};

class HeadAttention {
 public:
  HeadAttention(const Weights& weights, std::size_t layer, const AttentionGeometry& geometry,
                const AttentionForm& form, const NormRule& norm);

  CacheWidth cache_width() const;  // none where another layer's is read
  std::size_t reads_layer() const { return cache_; }
  // Keys and values go into this cache, and not into that of the layer's number: of layers passed several times.
  void keep_in(std::size_t cache) { layer_ = cache_ = cache; }
  // x: after the layer's norm, [tokens, hidden]. `angles`: of the batch's positions; null: nothing rotates.
  Matrix forward(const Matrix& x, const Batch& batch, const RopeAngles* angles, Ops& ops,
                 const TapScope& at) const;

 private:
  struct Qkv {
    Matrix q, k, v;  // [tokens, heads · qk_dim], [tokens, kv_heads · qk_dim], [tokens, kv_heads · v_dim]
    Matrix index_q, index_k;  // of a layer with an index
    Matrix relative;          // of one with biases of distances: what queries say of these
    Matrix unplaced;          // k before it is rotated, where a cache renumbers its rows
  };
  Qkv project(const Matrix& x, Ops& ops, const TapScope& at) const;
  void make_units(Qkv& of, Ops& ops) const;
  void convolve(Qkv& of, const Matrix& x, const Batch& batch, Ops& ops) const;
  void require_whole_cache(const Batch& batch) const;
  bool is_biased() const;
  Matrix gated(const Matrix& context, const Matrix& gate, Ops& ops) const;
  void clip(Qkv& of, Ops& ops) const;
  void cut_by_key_head(const Matrix& fused, Qkv& to, Ops& ops) const;
  void cut_by_group(const Matrix& fused, Qkv& to, Ops& ops) const;
  Matrix cut_gate(Matrix& q, Ops& ops) const;
  void rotate(Matrix& x, std::size_t heads, const RopeAngles& angles, Ops& ops) const;
  // Queries or keys as they are compared: rotated, and what comes behind that.
  Matrix placed(Matrix x, std::size_t heads, const Norm& norm, const RopeAngles* angles, Ops& ops) const;
  Matrix warmed(const Matrix& q, const Batch& batch, Ops& ops) const;
  // Rows picked one by one: a call's sequences point into them.
  using RowTables = std::deque<std::vector<std::int32_t>>;
  void add_spans(const Batch::Sequence& sequence, const PagedKvView& keys, AttentionCall& call,
                 RowTables& tables) const;
  PagedKvView keys_of(const Batch& batch, std::size_t sequence, const RopeAngles* angles, Ops& ops) const;
  PagedKvView values_of(const SequenceCache& cache) const;
  AttentionCall call_of(const Matrix& q) const;
  Matrix attend(const Qkv& of, const Batch& batch, const RopeAngles* angles, Ops& ops,
                const TapScope& at) const;
  Matrix joined_with_first_pass(const Matrix& q, const Matrix& context, const Batch& batch, Ops& ops) const;
  Matrix attend_to_blocks(const Qkv& of, const Batch& batch, Ops& ops) const;
  // The places in its text that each query attends to, in their order.
  std::vector<std::vector<std::int32_t>> pooled_places(const Qkv& of, const Batch& batch, Ops& ops) const;
  Matrix attend_to_pooled(const Qkv& of, const std::vector<std::vector<std::int32_t>>& places,
                          const Batch& batch, Ops& ops) const;
  // Key heads [first, first + count) of this process, which go by one head of the index.
  struct IndexGroup {
    std::size_t head, first, count;
  };
  Matrix attend_to_blocks(const Qkv& of, const std::vector<double>& index_queries, const Batch& batch,
                          const IndexGroup& group, Ops& ops) const;

  std::size_t layer_;
  std::size_t cache_;  // the layer whose keys and values are attended to: this one, or one before it
  AttentionGeometry geometry_;
  AttentionForm form_;
  const Hyperparameters& h_;
  double scale_;
  std::vector<double> slopes_;
  Projection qkv_, q_, k_, v_, o_, gate_;  // qkv, or the three
  Projection pass_gate_;                   // [heads, qk_dim]
  Norm q_norm_, k_norm_, v_norm_, unit_, early_unit_, context_unit_;
  Norm context_norm_;  // of what o is given, over all heads (BitNet)
  WeightView sinks_;
  std::optional<BlockIndex> index_;
  std::optional<ValueExperts> value_experts_;
  std::optional<Differential> differential_;
  std::optional<RelativeAttention> relative_;
};

}  // namespace assay
