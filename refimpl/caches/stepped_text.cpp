#include "refimpl/caches/stepped_text.h"

#include "refimpl/models/mapped_file.h"

namespace assay {

SteppedText::SteppedText(const LanguageModel& model, Ops& ops,
                         const std::shared_ptr<const CacheMethod>& method, std::size_t prompt)
    : model_(model), ops_(ops), cache_(ops, model.cache_widths(), model.context()) {
  if (method) cache_.keep_by(method, prompt);
}

std::vector<double> SteppedText::read(std::span<const TokenId> tokens) {
  cache_.require_room(tokens.size());
  Batch batch;
  batch.add(tokens, cache_);
  const Matrix hidden = model_.hidden(batch, ops_, {});
  std::vector<double> logits = ops_.download(model_.logits(hidden.row_range(tokens.size() - 1, 1), ops_, {}));
  require_mapped();
  cache_.advance(tokens.size());
  return logits;
}

}  // namespace assay
