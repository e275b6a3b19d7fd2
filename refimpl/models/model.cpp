#include "refimpl/models/model.h"

#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {

bool LanguageModel::cache_serves(std::size_t, std::size_t) const {
  return true;
}

Matrix LanguageModel::draft(std::size_t, const Batch&, const Matrix&, Ops&, const Taps&) const {
  throw Error::internal("the model predicts one token only");
}

Matrix LanguageModel::draft_logits(std::size_t, const Matrix&, Ops&, const Taps&) const {
  throw Error::internal("the model predicts one token only");
}

}  // namespace assay
