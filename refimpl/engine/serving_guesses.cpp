// Guesses ahead: made before a step, computed in it, kept where they are right.
#include <algorithm>
#include <chrono>

#include "refimpl/engine/served.h"

namespace assay {

// Behind the newest token of each text that is being written. They are computed with it, and what is chosen from the
// row of the token before each says whether it was right: then its own row counts too.
void ServingEngine::guess() {
  if (!options_.speculation.source) return;
  const auto start = std::chrono::steady_clock::now();
  for (ServedText* text : scheduler_->running()) {
    if (text->pending() == 1 && !of_text_.at(text)->made.ids.empty()) guess(*of_text_.at(text));
  }
  for (ServedText* text : scheduler_->waiting()) {
    if (of_text_.at(text)->handed) guess(*of_text_.at(text));
  }
  counts_.draft_seconds += seconds_from(start);
}

void ServingEngine::guess(Served& served) {
  served.guess = {};
  const TreeShape shape = shape_for(served);
  if (shape.empty()) return;
  const AcceptanceRule::Place place = {served.sampler, *served.draws};
  served.guess = served.drafter->guess({served.ids, shape, *options_.speculation.rule, place});
  counts_.draft_rows += served.guess.rows;
  const std::size_t room = scheduler_->capacity() - std::min(scheduler_->capacity(), served.ids.size());
  std::vector<Guess>& guesses = served.guess.guesses;
  if (guesses.size() > room) guesses.resize(room);
  for (const Guess& guess : guesses) served.ids.push_back(guess.token);
  served.text.tokens += guesses.size();
  served.text.guessed = guesses.size();
}

// No deeper than the text may go on; recurrent layers take back a chain alone.
TreeShape ServingEngine::shape_for(const Served& served) const {
  const std::size_t known = served.ids.size(), limit = std::min(model_.context(), scheduler_->capacity());
  std::size_t deepest = std::min(limit - std::min(limit, known),
                                 served.request.text.max_new_tokens - served.made.ids.size() - 1);
  const bool chain = scheduler_->options().has_states;
  if (chain) deepest = std::min(deepest, SequenceCache::kTakenBack - 1);
  TreeShape shape = options_.speculation.shape;
  shape.resize(std::min(shape.size(), deepest));
  if (chain) std::fill(shape.begin(), shape.end(), std::size_t{1});
  return model_.cache_serves(known, known + guesses_of(shape)) ? shape : TreeShape();
}

void ServingEngine::forget_guesses() {
  for (const auto& [text, served] : of_text_) {
    served->ids.resize(served->ids.size() - served->text.guessed);
    served->text.tokens = served->ids.size();
    served->text.guessed = 0;
  }
}

// It goes on from what stands beside the blocks that were hit.
void ServingEngine::resume_drafter(Served& served) const {
  if (!served.drafter) return;
  std::vector<Drafter::Beside> blocks;
  for (std::size_t b = 0; b < served.text.cached / options_.cache.block_tokens; ++b) {
    const BlockContent* content = scheduler_->pools()[0]->content(served.text.tables[0][b]);
    blocks.push_back(content == nullptr ? nullptr : content->drafts);
  }
  served.drafter->resume(blocks, served.text.cached);
}

// The tree's mask: a table of the rows that the guess sees, one for each token. Guesses lie in rows of their own, behind those
// of the sure tokens, in their order.
SequenceCache& ServingEngine::branch(Served& served, std::size_t guess) {
  auto& branch = served.branches.emplace_back(std::make_unique<Branch>(ops_, storage_, model_.context()));
  const std::vector<std::size_t> seen = parts_.seen_by(served.guess, guess);
  const std::size_t sure = served.text.sure();
  for (const BlockTable& table : served.text.tables) {
    BlockTable& rows = branch->rows.emplace_back();
    for (std::size_t token = 0; token < sure; ++token) rows.push_back(storage_.row(table, token));
    for (const std::size_t other : seen) rows.push_back(storage_.row(table, sure + other));
  }
  if (!options_.coded_blocks) branch->cache.keep_by(options_.method, 0);
  branch->cache.resume(sure + seen.size() - 1, {});
  return branch->cache;
}

// Of the step's rows those of sure tokens and right guesses, on end.
void ServingEngine::keep_right(Served& served, StepPlan::Feed& feed, const Matrix& hidden) {
  const std::size_t wrong = served.fed_guesses - served.right.size(), sure = feed.tokens - served.fed_guesses;
  counts_.guessed += served.fed_guesses;
  counts_.accepted += served.right.size();
  if (served.fed_guesses > 0) {
    ++counts_.guessing_steps;
    counts_.guessing_tokens += served.right.size() + 1;
  }
  const std::size_t first_guess = feed.text->cached + sure;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < sure; ++i) rows.push_back(served.first_row + i);
  for (std::size_t i = 0; i < served.right.size(); ++i) {
    rows.push_back(served.first_row + sure + served.right[i]);
    if (served.right[i] != i)
      storage_.move(feed.text->tables, first_guess + served.right[i], first_guess + i);
  }
  feed.tokens -= wrong;
  served.cache.advance(feed.tokens);
  if (served.drafter && served.drafter->wants_hidden())
    served.drafter->see(served.ids, feed.text->cached, ops_.gather(hidden, rows));
}

}  // namespace assay
