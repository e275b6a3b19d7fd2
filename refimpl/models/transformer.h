// The decoder most families share, told by data: what norms stand where is read off the checkpoint (each is
// there or it is not), numbers are the tree's Hyperparameters, and how the class rounds and mixes is
// DecoderForm, which a family's file states.
//
//   x = embed(tokens) · embedding_scale
//   each layer:   x = x + post_norm(o(attention(rope(norm(q, k, v of norm(x))))))
//                 x = x + post_norm(mlp(norm(x)))          mlp: gated, or a mixture of such experts
//   logits = cap(head(norm(x)))
//
// In place of attention a layer may have a recurrent mixer (recurrent_mixer.h). Where q_proj is twice as wide as the
// heads, each head's second half is a gate of what attention gives: o(context · σ(gate)).
#pragma once

#include <memory>
#include <optional>

#include "refimpl/models/model.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

struct DecoderForm {
  NormForm norm = NormForm::weight_last;
  std::optional<GatedActivation> mlp = {};  // unset: the one that the config names
  // Families with experts; how many are chosen, and whether their weights add up to 1, is the tree's.
  GateRule gate = {};
  MoeForm moe = MoeForm::sparse;
  bool interleaved_experts = false;
  RecurrentForm recurrent = {};  // of layers that keep a state in place of a cache; epsilon is the tree's
};

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form);

}  // namespace assay
