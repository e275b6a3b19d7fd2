// Scores that grow with the text (scalable softmax, arXiv 2501.19399), a scale and a bias a head:
//
//   queries of head h at position p  ×  s[h] ln(p + 1) + b[h]
#pragma once

#include "refimpl/models/weights.h"
#include "refimpl/step/batch.h"

namespace assay {

struct ScoreScale {
  WeightView scale, bias;  // [heads] each, or none

  explicit operator bool() const { return static_cast<bool>(scale); }
  // q: [tokens, heads · width]
  Matrix operator()(const Matrix& q, const Batch& batch, Ops& ops) const;
};

}  // namespace assay
