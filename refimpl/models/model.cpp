#include "refimpl/models/model.h"

#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {

void Batch::add(std::span<const TokenId> more, SequenceCache& cache) {
  sequences.push_back({tokens.size(), more.size(), &cache});
  for (std::size_t i = 0; i < more.size(); ++i) {
    tokens.push_back(more[i]);
    positions.push_back(cache.length() + i);
  }
}

void Batch::go_on() const {
  if (may_stop && interrupted()) throw Interrupted{};
}

bool LanguageModel::cache_serves(std::size_t, std::size_t) const {
  return true;
}

Matrix LanguageModel::draft(const Batch&, const Matrix&, Ops&, const Taps&) const {
  throw Error::internal("the model predicts one token only");
}

Matrix LanguageModel::draft_logits(const Matrix&, Ops&, const Taps&) const {
  throw Error::internal("the model predicts one token only");
}

}  // namespace assay
