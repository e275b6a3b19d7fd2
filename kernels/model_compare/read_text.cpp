#include "kernels/model_compare/read_text.h"

#include <algorithm>

#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/engine/scoring.h"

namespace assay {
namespace {

constexpr std::string_view kLayers = "layers.", kDraft = "mtp.";

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// The prediction layer, step by step beside the model; it has a past of its own.
class Drafting {
 public:
  Drafting(const LanguageModel& model, Ops& ops, const Taps& taps)
      : model_(model), ops_(ops), taps_(taps), cache_(ops, model.cache_widths(), model.context()) {}

  // `hidden`: what the head saw of `step`, the newest tokens.
  Matrix follow(std::span<const TokenId> step, const Matrix& hidden) {
    const Matrix before = before_;
    before_ = hidden.row_range(step.size() - 1, 1);
    if (!before.empty()) return draft(step, before);
    return step.size() < 2 ? Matrix{} : draft(step.subspan(1), hidden.row_range(0, step.size() - 1));
  }
  std::vector<double> logits(const Matrix& states) {
    return states.empty() ? std::vector<double>{}
                          : ops_.download(model_.draft_logits(0, states, ops_, taps_));
  }

 private:
  Matrix draft(std::span<const TokenId> tokens, const Matrix& hidden) {
    Batch batch;
    batch.add(tokens, cache_);
    Matrix states = model_.draft(0, batch, hidden, ops_, taps_);
    cache_.advance(tokens.size());
    return states;
  }

  const LanguageModel& model_;
  Ops& ops_;
  const Taps& taps_;
  SequenceCache cache_;
  Matrix before_;  // of the last token of the step before
};

// Calls use(step, hidden states) for each step of a text.
template <class Use>
void for_each_step(const LanguageModel& model, Ops& ops, const TextReading& text, const Taps& taps,
                   const Use& use) {
  SequenceCache cache(ops, model.cache_widths(), model.context());
  cache.require_room(text.tokens.size());
  for (std::size_t at = 0; at < text.tokens.size() && !interrupted();) {
    const std::size_t count = at == 0 ? text.tokens.size() - text.decode : 1;
    const std::span<const TokenId> step = text.tokens.subspan(at, count);
    Batch batch;
    batch.add(step, cache);
    const Matrix hidden = model.hidden(batch, ops, taps);
    cache.advance(count);
    use(step, hidden);
    at += count;
  }
}

}  // namespace

TextLogits read_text(const LanguageModel& model, Ops& ops, const TextReading& text, const Taps& taps) {
  Drafting drafting(model, ops, taps);
  TextLogits said;
  for_each_step(model, ops, text, taps, [&](std::span<const TokenId> step, const Matrix& hidden) {
    append(said.main, ops.download(model.logits(hidden, ops, taps)));
    if (text.draft) append(said.draft, drafting.logits(drafting.follow(step, hidden)));
  });
  return said;
}

TextStates read_states(const LanguageModel& model, Ops& ops, const TextReading& text, const Taps& taps) {
  Drafting drafting(model, ops, taps);
  TextStates states;
  for_each_step(model, ops, text, taps, [&](std::span<const TokenId> step, const Matrix& hidden) {
    states.main.push_back(hidden);
    if (text.draft) states.draft.push_back(drafting.follow(step, hidden));
  });
  return states;
}

std::size_t rows_compared(std::size_t vocabulary) {
  constexpr std::size_t kBytes = 16 << 20;  // fewer, and the head's weights are read too often
  return rows_at_once(vocabulary, kBytes);
}

std::vector<RowsOfHead> head_rows(const TextStates& states, std::size_t at_once) {
  std::vector<RowsOfHead> all;
  for (const bool draft : {false, true}) {
    const std::vector<Matrix>& steps = draft ? states.draft : states.main;
    std::size_t row = 0;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const std::size_t rows = steps[step].rows();
      for (std::size_t first = 0; first < rows; first += at_once)
        all.push_back({draft, step, first, std::min(at_once, rows - first), row + first});
      row += rows;
    }
  }
  return all;
}

Matrix head_logits(const LanguageModel& model, Ops& ops, const TextStates& states, const RowsOfHead& rows,
                   const Taps& taps) {
  const Matrix given =
      (rows.draft ? states.draft : states.main).at(rows.step).row_range(rows.first, rows.count);
  return rows.draft ? model.draft_logits(0, given, ops, taps) : model.logits(given, ops, taps);
}

TapName split_tap_name(std::string_view name) {
  const bool draft = name.starts_with(kDraft);
  if (!draft && !name.starts_with(kLayers)) return {"", std::string(name)};
  const auto first = name.find('.') + 1, second = name.find('.', first);
  if (second == std::string_view::npos || !parse_u64(name.substr(first, second - first)))
    return {"", std::string(name)};
  return {std::string(name.substr(draft ? 0 : first, second - (draft ? 0 : first))),
          std::string(name.substr(second + 1))};
}

std::size_t first_token_of(std::string_view tap) {
  return tap.starts_with(kDraft) ? 1 : 0;
}

}  // namespace assay
