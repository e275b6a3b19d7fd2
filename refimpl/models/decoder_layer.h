// A layer of the one decoder (transformer.h), and how it is read off a checkpoint: what stands in it follows from which
// tensors there are, and from DecoderForm.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "refimpl/models/experts_beside.h"
#include "refimpl/models/latent_attention.h"
#include "refimpl/models/per_layer_input.h"
#include "refimpl/models/residual_mix.h"
#include "refimpl/models/transformer.h"

namespace assay {

struct DecoderLayer {
  std::size_t index = 0;
  std::optional<HeadAttention> attention;
  std::optional<LatentAttention> latent;                              // in its place
  std::unique_ptr<RecurrentMixer> recurrent;                          // likewise, or beside it
  Projection map;                                                     // likewise: one matrix
  Norm attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;  // each may be absent
  GatedMlp mlp;                                                       // in a layer without experts
  std::optional<Mixture> mixture;
  std::optional<ExpertsBeside> beside;  // in a layer with both
  std::optional<PerLayerStep> own_input;
  double scale = 1;                       // of what comes out
  ResidualMix attention_mix, mlp_mix;     // or none
  ResidualGate attention_gate, mlp_gate;  // likewise
  InklingBlocks convolutions;             // likewise
  bool mixes_tokens() const { return attention || latent || recurrent || map; }
  bool has_mlp() const { return mixture || mlp.down; }
};

// What a layer's norms are made of.
class NormReader {
 public:
  NormReader(const Weights& weights, const DecoderForm& form)
      : weights_(weights),
        rule_{form.norm_kind, form.norm, hyperparameters(weights.tree()).epsilon},
        post_rule_{form.norm_kind, form.norm, form.post_epsilon.value_or(rule_.epsilon)},
        final_rule_{form.norm_kind, form.final_norm.value_or(form.norm), rule_.epsilon},
        unweighted_(form.unweighted_norms) {}

  const NormRule& rule() const { return rule_; }
  const NormRule& post_rule() const { return post_rule_; }  // of what attention and MLPs give
  // Absent where nothing is stored.
  Norm stored(Role role, std::size_t layer = 0, std::optional<Part> part = {}) const {
    return by(rule_, role, layer, part);
  }
  // Behind attention and MLPs.
  Norm stored_less(std::optional<double> offset, Role role, std::size_t layer) const {
    return offset ? Norm::with_offset(weights_.find({.role = role, .part = Part::norm, .layer = layer}),
                                      *offset, post_rule_)
                  : by(post_rule_, role, layer, Part::norm);
  }
  Norm stored_or_unweighted(Role role, std::size_t layer = 0) const {
    return unweighted_ ? Norm::unweighted(weights_.tree().hidden_size, rule_) : stored(role, layer);
  }
  Norm of_output() const {
    return unweighted_ ? Norm::unweighted(weights_.tree().hidden_size, final_rule_)
                       : by(final_rule_, Role::final_norm, 0, {});
  }

 private:
  Norm by(const NormRule& rule, Role role, std::size_t layer, std::optional<Part> part) const {
    return {weights_.find({.role = role, .part = part, .layer = layer}),
            weights_.find({.role = role, .part = part, .layer = layer, .bias = true}), rule};
  }

  const Weights& weights_;
  NormRule rule_, post_rule_, final_rule_;
  bool unweighted_;
};

// A module for multi-token prediction.
struct DecoderPrediction {
  PredictionFrame frame;
  std::vector<DecoderLayer> layers;
};

DecoderLayer read_decoder_layer(const Weights& weights, std::size_t index, const GatedActivation& activation,
                                const DecoderForm& form);

// The attention of a pass behind the first: caches of one layer's passes lie side by side.
HeadAttention attention_of_pass(const Weights& weights, std::size_t layer, std::size_t pass,
                                const DecoderForm& form, const NormRule& norm);

// Layers of modules are numbered behind the main ones, one module's after the other's.
std::vector<DecoderPrediction> read_prediction(const Weights& weights, const GatedActivation& activation,
                                               const DecoderForm& form);

}  // namespace assay
