#include "kernels/logprobs/choice_ops.h"

#include <algorithm>
#include <cmath>

namespace assay::logprobs {
namespace {

// The taps that stand before a choice.
constexpr std::string_view kBefore[] = {".router_logits", ".index_weights"};

// The move is that of other scores, where choices before were turned since.
void move_scores(const Chooser& choose, const TurnedChoice& turned, std::span<double> scores) {
  constexpr int kDoublings = 12;
  const std::vector<double> own(scores.begin(), scores.end());
  for (double times = 1; times <= std::exp2(kDoublings); times *= 2) {
    for (std::size_t i = 0; i < own.size(); ++i) scores[i] = own[i] + times * turned.move[i];
    if (choose(scores) == turned.chosen) return;
  }
  std::copy(own.begin(), own.end(), scores.begin());
}

}  // namespace

void ChoiceOps::see(const std::string& tap, const Matrix&) {
  for (const std::string_view end : kBefore)
    if (tap.ends_with(end)) name_ = tap.substr(0, tap.size() - end.size());
}

// A text whose rotary frequencies follow its length may begin anew, whole (Sequence::next).
void ChoiceOps::step(std::span<const std::uint32_t> tokens) {
  first_ = tokens.size() == tokens_ ? 0 : next_;
  next_ = first_ + tokens.size();
  choice_ = 0;
}

Routing ChoiceOps::run(const MoeGateCall& given) {
  const Chooser choose = chooser_of_experts(given.correction, given.rule);
  MoeGateCall call = given;
  call.logits = turned_logits(given.logits, choose);
  Routing routing = PassingOps::run(call);
  if (watches())
    watch({.kind = ChoiceKind::experts, .name = name_, .choose = choose, .groups = call.rule.groups},
          rows_of(call.logits, routing.experts), 0);
  ++choice_;
  return routing;
}

KeyChoice ChoiceOps::run(const IndexCall& call) {
  KeyChoice choice = PassingOps::run(call);
  bool any = false;
  for (const TurnedChoice& turned : turned_) {
    if (turned.choice != choice_ || turned.token < first_ || turned.token >= next_) continue;
    choice.keys[turned.token - first_] = turned.chosen;
    any = true;
  }
  if (any) choice = with_positions(*this, std::move(choice.keys), call.top_k);
  if (watches())
    watch({.kind = ChoiceKind::keys, .name = name_, .choose = chooser_of_keys(call.top_k)},
          rows_of(call, choice), call.tokens_a_key);
  ++choice_;
  return choice;
}

Matrix ChoiceOps::scores_of_choice(const Matrix& scores, const Rule& rule) {
  const Chooser choose = [rule](std::span<const double> row) {
    std::vector<std::int32_t> experts = rule(row);
    std::sort(experts.begin(), experts.end());
    return experts;
  };
  const Matrix moved = turned_logits(scores, choose);
  if (watches()) {
    const std::vector<double> all = download(moved);
    std::vector<std::int32_t> chosen;
    for (std::size_t t = 0; t < moved.rows(); ++t) {
      const std::vector<std::int32_t> row =
          choose(std::span(all).subspan(t * moved.columns(), moved.columns()));
      chosen.insert(chosen.end(), row.begin(), row.end());
    }
    watch({.kind = ChoiceKind::experts, .name = name_, .choose = choose}, rows_of(moved, chosen), 0);
  }
  ++choice_;
  return moved;
}

Matrix ChoiceOps::turned_logits(const Matrix& logits, const Chooser& choose) {
  const std::size_t rows = logits.rows(), experts = logits.columns();
  std::vector<double> moved;
  for (const TurnedChoice& turned : turned_) {
    if (turned.choice != choice_ || turned.token < first_ || turned.token >= first_ + rows) continue;
    if (moved.empty()) moved = download(logits);
    move_scores(choose, turned, std::span(moved).subspan((turned.token - first_) * experts, experts));
  }
  return moved.empty() ? logits : upload(moved, rows, experts);
}

ChoiceOps::Rows ChoiceOps::rows_of(const Matrix& logits, const std::vector<std::int32_t>& experts) {
  Rows rows;
  const std::vector<double> all = download(logits);
  const std::size_t top_k = logits.rows() == 0 ? 0 : experts.size() / logits.rows();
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    const std::span row = std::span(all).subspan(t * logits.columns(), logits.columns());
    const std::span chosen = std::span(experts).subspan(t * top_k, top_k);
    rows.scores.emplace_back(row.begin(), row.end());
    rows.chosen.emplace_back(chosen.begin(), chosen.end());
    std::sort(rows.chosen.back().begin(), rows.chosen.back().end());
  }
  return rows;
}

ChoiceOps::Rows ChoiceOps::rows_of(const IndexCall& call, const KeyChoice& choice) {
  Rows rows = {std::vector<std::vector<double>>(call.q.rows()), choice.keys};
  visit_key_scores(*this, call, [&](std::size_t row, std::span<const double> scores) {
    if (scores.size() > call.top_k) rows.scores[row].assign(scores.begin(), scores.end());
  });
  return rows;
}

void ChoiceOps::watch(WatchedChoice watched, const Rows& rows, std::size_t tokens_a_key) {
  if (truth_ != nullptr) compare(watched.kind, rows, tokens_a_key);
  if (record_ != nullptr) keep(std::move(watched), rows);
}

void ChoiceOps::keep(WatchedChoice watched, const Rows& rows) {
  if (choice_ >= record_->size()) record_->resize(choice_ + 1);
  WatchedChoice& kept = (*record_)[choice_];
  watched.scores = std::move(kept.scores);
  watched.chosen = std::move(kept.chosen);
  kept = std::move(watched);
  for (std::size_t t = first_; t < kept.scores.size(); ++t) room_ += kept.scores[t].size() * sizeof(double);
  kept.scores.resize(first_);
  kept.chosen.resize(first_);
  for (const std::vector<double>& row : rows.scores)
    kept.scores.push_back(take_room(row.size()) ? row : std::vector<double>());
  kept.chosen.insert(kept.chosen.end(), rows.chosen.begin(), rows.chosen.end());
}

bool ChoiceOps::take_room(std::size_t scores) {
  const std::size_t bytes = scores * sizeof(double);
  if (bytes > room_) ++unkept_;
  if (bytes > room_) return false;
  room_ -= bytes;
  return true;
}

void ChoiceOps::compare(ChoiceKind kind, const Rows& rows, std::size_t tokens_a_key) {
  const WatchedChoice& truth = truth_->at(choice_);
  if (choice_ >= errors_->size()) errors_->resize(choice_ + 1);
  ChoiceErrors& errors = (*errors_)[choice_];
  errors.kind = kind;
  const std::size_t end = first_ + rows.scores.size();
  errors.tokens.resize(std::max(errors.tokens.size(), end));
  turned_tokens_.resize(std::max(turned_tokens_.size(), end));
  for (std::size_t t = first_; t < end; ++t) {
    if (turned_tokens_[t]) continue;
    const std::vector<double>&said = rows.scores[t - first_], &right = truth.scores[t];
    ChoiceErrors::OfToken& of = errors.tokens[t];
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (is_of_turned(i, tokens_a_key)) continue;
      const double error = std::abs(said[i] - right[i]);
      ++of.count;
      of.squares += error * error;
      errors.largest = std::max(errors.largest, error);
    }
  }
  for (std::size_t t = first_; t < end; ++t) {
    if (turned_tokens_[t] || rows.chosen[t - first_] == truth.chosen[t]) continue;
    turned_tokens_[t] = true;
    if (truth.scores[t].empty() || !take_room(truth.scores[t].size())) continue;
    ChoiceErrors::Turned turned = {rows.scores[t - first_], rows.chosen[t - first_]};
    for (std::size_t i = 0; i < turned.move.size(); ++i) turned.move[i] -= truth.scores[t][i];
    errors.tokens[t].turned.push_back(std::move(turned));
  }
}

// A key that stands for several tokens is made of theirs and those of the key before (pool_calls.h).
bool ChoiceOps::is_of_turned(std::size_t key, std::size_t tokens_a_key) const {
  const std::size_t windows = tokens_a_key == 1 ? 1 : 2;
  for (std::size_t t = (std::max(key + 1, windows) - windows) * tokens_a_key; t < (key + 1) * tokens_a_key;
       ++t)
    if (turned(t)) return true;
  return false;
}

}  // namespace assay::logprobs
