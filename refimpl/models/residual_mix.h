// Residuals that attend to earlier ones (Kimi K3): what a block is given is a mix of the stream as it was before some
// earlier layers, and as it is now,
//
//   Σ wⱼ · rowⱼ, w = softmax over j of score · norm(rowⱼ), of each token by itself
#pragma once

#include <span>
#include <string>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

struct ResidualMix {
  WeightView norm, score;  // [hidden], [1, hidden]

  // "model.layers.7.mlp_res" of "….mlp_res_norm.weight" and "….mlp_res_proj.weight".
  static ResidualMix read(const Weights& weights, const std::string& name);
  explicit operator bool() const { return static_cast<bool>(score); }
  Matrix operator()(std::span<const Matrix> kept, const Matrix& now, double epsilon, Ops& ops) const;
};

}  // namespace assay
