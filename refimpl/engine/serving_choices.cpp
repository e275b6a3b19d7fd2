// From a step's hidden states to the tokens that its texts go on with.
#include <algorithm>
#include <utility>

#include "core/system/error.h"
#include "refimpl/engine/scoring.h"
#include "refimpl/engine/served.h"
#include "refimpl/models/mapped_file.h"

namespace assay {

// Logits a few rows at a time: a row is as wide as the vocabulary.
void ServingEngine::deliver(const Matrix& hidden, const std::vector<Row>& rows) {
  const std::size_t vocabulary = model_.vocabulary(), at_once = rows_at_once(vocabulary);
  for (std::size_t first = 0; first < rows.size(); first += at_once) {
    const std::size_t count = std::min(at_once, rows.size() - first);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count; ++i) places.push_back(rows[first + i].row);
    const std::vector<double> logits = ops_.download(model_.logits(ops_.gather(hidden, places), ops_, {}));
    require_mapped();
    for (std::size_t i = 0; i < count; ++i)
      deliver(rows[first + i], std::span(logits).subspan(i * vocabulary, vocabulary));
  }
}

void ServingEngine::deliver(const Row& row, std::span<const double> logits) {
  Served& served = *row.served;
  const GenerationRequest& asked = served.request.text;
  if (served.request.prompt_logits && row.position == served.prompt_rows &&
      row.position < asked.prompt.size()) {
    ++served.prompt_rows;
    if (prompt_listener_) prompt_listener_(served.number, row.position, logits);
  }
  if (!row.chooses || row.behind != served.next_row || served.end)
    return;  // behind a wrong guess, or the end
  if (asked.max_new_tokens == 0) {
    served.end = FinishReason::length;
    return;
  }
  if (served.made.ids.empty() && served.sample == 0 && served.request.samples > 1)
    served.forked_from.assign(logits.begin(), logits.end());
  try_to_choose(served, logits, row.behind);
}

// Before the token is known nothing of the text has changed, so that it can end here by itself.
void ServingEngine::try_to_choose(Served& served, std::span<const double> logits, std::size_t behind) {
  if (!end_listener_) return choose(served, logits, behind);
  try {
    choose(served, logits, behind);
  } catch (const Error& error) {
    served.failure = error;
    served.end = FinishReason::interrupted;
    served.next_row = Served::kNoRow;
  }
}

// It is the text's next token: does it end it?
bool ServingEngine::push(Served& served, TokenId id, std::span<const double> logits) {
  served.sampler.push(id);
  served.ids.push_back(id);
  served.made.ids.push_back(id);
  if (listener_) listener_(served.number, served.sample, id, logits);
  const bool said = served.watch && served.watch(id);
  return said || served.sampler.ends(id) || served.sampler.complete(model_.vocabulary());
}

// `behind`: the row's, as Served::next_row counts.
void ServingEngine::choose(Served& served, std::span<const double> logits, std::size_t behind) {
  const std::vector<std::size_t> places = served.guess.children(behind, served.fed_guesses);
  std::vector<const Guess*> children;
  for (const std::size_t place : places) children.push_back(&served.guess.guesses[place]);
  const AcceptanceRule::Chosen chosen = options_.speculation.rule->choose(
      logits, children, {served.sampler, *served.draws, served.right.size()});
  const std::size_t depth = served.right.size();
  if (!children.empty()) {
    counts_.tried.resize(std::max(counts_.tried.size(), depth + 1));
    counts_.right.resize(counts_.tried.size());
    ++counts_.tried[depth];
    counts_.right[depth] += chosen.guess ? 1 : 0;
  }
  const bool stops = push(served, chosen.token, logits);
  served.end = parts_.end({stops, served.made.ids.size(), served.request.text.max_new_tokens,
                           served.ids.size(), std::min(model_.context(), scheduler_->capacity()),
                           chosen.guess ? served.fed_guesses - places[*chosen.guess] : 0});
  served.next_row = Served::kNoRow;
  if (!chosen.guess || served.end) return;
  served.right.push_back(places[*chosen.guess]);
  served.next_row = served.right.back() + 1;
}

}  // namespace assay
