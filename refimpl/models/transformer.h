// The decoder most families share, told by data: what norms stand where is read off the checkpoint (each is
// there or it is not), numbers are the tree's Hyperparameters, and how the class rounds and mixes is
// DecoderForm, which a family's file states.
//
//   x = embed(tokens) · embedding_scale
//   each layer:   x = x + post_norm(o(attention(rope(norm(q, k, v of norm(x)))))) · residual_scale
//                 x = x + post_norm(mlp(norm(x))) · residual_scale     mlp: gated, plain, or a mixture of such
//   or:           x = x + attention(norm(x)) + mlp(norm(x))            both of the same x
//   logits = cap(head(norm(x)) · head_scale)
//
// In place of attention a layer may have a recurrent mixer (recurrent_mixer.h).
#pragma once

#include <memory>
#include <optional>

#include "refimpl/models/head_attention.h"
#include "refimpl/models/model.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

struct DecoderForm {
  NormForm norm = NormForm::weight_last;
  NormKind norm_kind = NormKind::rms;
  bool unweighted_norms = false;            // before attention and MLP and at the end, though none is stored
  bool rounded_embedding_scale = false;     // a number of the weights' type
  bool branches_first = false;              // (attention + mlp) + x, not (x + attention) + mlp
  std::size_t position_offset = 0;          // learnt positions: of the first token
  std::optional<GatedActivation> mlp = {};  // unset: the one that the config names
  AttentionForm attention = {};
  // Families with experts; how many are chosen, their groups and scale, and whether their weights add up to 1, is
  // the tree's.
  GateRule gate = {};
  ResultRounding router_rounding = ResultRounding::as_arithmetic;
  bool scaled_inputs = false;  // an expert's weight scales what it is given
  MoeForm moe = MoeForm::sparse;
  bool interleaved_experts = false;
  RecurrentForm recurrent = {};  // of layers that keep a state in place of a cache; epsilon is the tree's
};

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form);

}  // namespace assay
