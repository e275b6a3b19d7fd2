// The decoder most families share, told by data: what norms stand where is read off the checkpoint (each is
// there or it is not), numbers are the tree's Hyperparameters, and how the class rounds and mixes is
// DecoderForm, which a family's file states.
//
//   x = embed(tokens) · embedding_scale
//   each layer:   x = x + post_norm(o(attention(rope(norm(q, k, v of norm(x))))))
//                 x = x + post_norm(mlp(norm(x)))          mlp: gated, or a mixture of such experts
//   logits = cap(head(norm(x)))
#pragma once

#include <memory>
#include <optional>

#include "refimpl/models/model.h"

namespace assay {

struct DecoderForm {
  NormForm norm = NormForm::weight_last;
  std::optional<GatedActivation> mlp = {};  // unset: the one that the config names
  // Families with experts; how many are chosen, and whether their weights add up to 1, is the tree's.
  GateRule gate = {};
  MoeForm moe = MoeForm::sparse;
  bool interleaved_experts = false;
};

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form);

}  // namespace assay
