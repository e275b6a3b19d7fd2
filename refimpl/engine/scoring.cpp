#include "refimpl/engine/scoring.h"

#include <algorithm>

#include "core/system/threads.h"
#include "refimpl/engine/engine.h"
#include "refimpl/models/mapped_file.h"

namespace assay {

TextScorer::TextScorer(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                       const Taps& taps, std::size_t chunk, const std::shared_ptr<const CacheMethod>& method)
    : model_(model),
      ops_(ops),
      taps_(taps),
      chunk_(chunk),
      sequence_(model, ops, {tokens.begin(), tokens.end()}, method) {
  check_prompt(tokens, model);
}

bool TextScorer::read() {
  if (sequence_.pending() == 0 || interrupted()) return false;
  Batch batch;
  batch.may_stop = true;
  batch.add(sequence_.next(chunk_), sequence_.cache());
  first_ = sequence_.cache().length();
  taps_.step(batch.tokens);
  try {
    hidden_ = model_.hidden(batch, ops_, taps_);
  } catch (const Batch::Interrupted&) {
    return false;
  }
  sequence_.cache().advance(batch.tokens.size());
  return true;
}

std::vector<double> TextScorer::logits(std::size_t position, std::size_t count) {
  const Matrix rows = hidden_.row_range(position - first_, count);
  std::vector<double> values = ops_.download(model_.logits(rows, ops_, taps_));
  require_mapped();
  return values;
}

std::size_t rows_at_once(std::size_t vocabulary, std::size_t bytes) {
  return std::clamp<std::size_t>(bytes / sizeof(double) / std::max<std::size_t>(1, vocabulary), 1, 512);
}

}  // namespace assay
