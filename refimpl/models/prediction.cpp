#include "refimpl/models/prediction.h"

namespace assay {

std::optional<PredictionFrame> PredictionFrame::find(const Weights& weights, std::size_t first,
                                                     std::size_t last, const NormRule& norm,
                                                     const PredictionForm& form) {
  const auto norm_of = [&](Role role, std::size_t layer) {
    return Norm(weights.find({.role = role, .part = Part::mtp, .layer = layer}), {}, norm);
  };
  PredictionFrame frame;
  frame.projection = find_projection(weights, Role::mtp_projection, first);
  frame.embedding_norm = norm_of(Role::mtp_embedding_norm, first);
  frame.hidden_norm = norm_of(Role::mtp_hidden_norm, first);
  const std::size_t behind = weights.tree().layers;
  using FinalNorm = PredictionForm::FinalNorm;
  if (form.final_norm == FinalNorm::of_model)
    frame.final_norm = Norm(weights.find({.role = Role::final_norm}), {}, norm);
  else if (form.final_norm != FinalNorm::none)
    frame.final_norm = norm_of(Role::final_norm, form.final_norm == FinalNorm::of_first ? behind : last);
  frame.hidden_first = form.hidden_first;
  if (!frame.projection || !frame.embedding_norm || !frame.hidden_norm ||
      (!frame.final_norm && form.final_norm != FinalNorm::none))
    return std::nullopt;
  frame.embedding = weights.find({.role = Role::token_embedding, .part = Part::mtp, .layer = behind});
  if (form.own_head) {
    frame.head = weights.find({.role = Role::output_head, .part = Part::mtp, .layer = first});
    if (!frame.head) return std::nullopt;
  }
  return frame;
}

Matrix PredictionFrame::enter(const Matrix& token, const Matrix& given, Ops& ops) const {
  const Matrix e = embedding_norm(token, ops), h = hidden_norm(given, ops);
  return projection(hidden_first ? ops.concatenate(h, e) : ops.concatenate(e, h), ops);
}

}  // namespace assay
