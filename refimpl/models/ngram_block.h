// What Qwen4-Exp adds to the streams in front of some layers: embeddings of the last tokens together, found by hash.
//
//   h = t_0 m_0 ⊕ … ⊕ t_{n-1} m_{n-1}  for n = 2 … size;   row h mod p of head's table, its p a prime
//   e = those rows side by side;   g_s = norm(key(e))_s · norm(streams)_s / √width;   v_s = σ(sign(g_s) √|g_s|) value(e)
//   streams + v + silu(conv(norm(v)))
//
// t_i is the token i places before, or the end-of-text token where one stands between, or the text begins. Numbers m are
// made from a seed by SplitMix64 (transformers, Qwen4ExpTextNGramEmbedding). The convolution is dilated by `size`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refimpl/models/norms.h"
#include "refimpl/models/own_weight.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

struct NgramForm {
  std::size_t size = 3, heads_each = 8;  // the longest n-gram; heads of each length
  std::uint64_t base = 0, seed = 0;      // primes from there on; of the multipliers
  TokenId end = 0;
};

class NgramBlock {
 public:
  // `number`: of the layers that have one, in their order. `streams`: how many. None where the layer has no tables.
  static std::optional<NgramBlock> find(const Weights& weights, std::size_t layer, std::size_t number,
                                        std::size_t streams, const NgramForm& form, const NormRule& rule);

  // The last tokens, and what the convolution saw: behind the states of the layer's mixer.
  std::vector<StateShape> states() const;
  // streams: [tokens, streams · width]; what is added to them. `part`: of the layer's states, where these begin.
  Matrix forward(const Matrix& streams, std::size_t layer, std::size_t part, const Batch& batch, Ops& ops,
                 const TapScope& at) const;

 private:
  struct Head {
    std::uint64_t rows = 0, first = 0;  // of the table: its prime, and those of the heads before it
  };
  void require_tables(const Weights& weights) const;
  Matrix embedded(std::size_t layer, std::size_t part, const Batch& batch, Ops& ops) const;
  void add_rows(const std::vector<std::uint64_t>& tokens, std::vector<double>& to) const;
  void add_row(std::uint64_t row, std::vector<double>& to) const;

  NgramForm form_;
  std::size_t streams_ = 1, rows_a_part_ = 0;
  std::vector<std::uint64_t> multipliers_;
  std::vector<Head> heads_;
  std::vector<WeightView> parts_;  // of the table
  WeightView key_, value_;
  Norm norm_key_, norm_query_, norm_conv_;
  std::shared_ptr<const OwnWeight> dilated_;  // [channels, (kernel - 1) · size + 1]
};

}  // namespace assay
