// The frame of models whose layers no decoder of transformer.h has: embedding, layers one after the other, norm, head. They are
// run whole: it is no StagedModel.
#pragma once

#include <string>
#include <vector>

#include "refimpl/models/norms.h"
#include "refimpl/models/rope_table.h"

namespace assay {

// What every layer of a step is given.
struct OwnStep {
  const Batch& batch;
  const std::vector<RopeAngles>& angles;  // of Hyperparameters::ropes
  const Matrix& embedding;                // [tokens, hidden]
  Ops& ops;
};

class OwnLayers : public LanguageModel {
 public:
  // `final_norm`: of the norm behind the last layer.
  OwnLayers(const Weights& weights, const NormRule& final_norm);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  std::vector<CacheWidth> cache_widths() const override;
  bool cache_serves(std::size_t length, std::size_t other) const override;
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;

 protected:
  const Hyperparameters& settings() const { return h_; }
  virtual CacheWidth cache_width(std::size_t layer) const = 0;
  virtual Matrix entered(const Matrix& embedding, Ops& ops) const;  // what the first layer is given
  // The stream behind a layer, whose tap "out" it is. `beside`: what layers leave for the next ones; empty at first.
  virtual Matrix layer(std::size_t index, const Matrix& x, const OwnStep& step, const TapScope& at,
                       std::vector<Matrix>& beside) const = 0;
  // … and of this what the next layer is given.
  virtual Matrix passed_on(std::size_t index, const Matrix& x, Ops& ops) const;

 private:
  Hyperparameters h_;
  std::size_t layers_, context_;
  WeightView embedding_, head_, head_bias_;
  Norm final_norm_;
};

// A tensor by its name; Error::input where it is missing.
WeightView named_weight(const Weights& weights, const std::string& name);

// Keys and values go into the cache of `layer`, and `call` without sequences becomes attention to all of it.
Matrix attend_to_cache(AttentionCall call, const Matrix& k, const Matrix& v, std::size_t layer,
                       const Batch& batch, Ops& ops);
// What lies between it and the memory of a sequence: keys and values of so many heads.
CacheWidth cache_of_heads(std::size_t heads, std::size_t qk_dim, std::size_t v_dim, std::size_t window = 0);

// Every row × the same vector, and + it, as the arithmetic rounds.
Matrix times_vector(const Matrix& x, const std::vector<double>& factors, Ops& ops);
Matrix plus_vector(const Matrix& x, const std::vector<double>& more, Ops& ops);

}  // namespace assay
