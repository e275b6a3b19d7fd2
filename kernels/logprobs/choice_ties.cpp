#include "kernels/logprobs/choice_ties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace assay::logprobs {
namespace {

using Chosen = std::set<std::int32_t>;
constexpr int kHalvings = 24;      // of the error, down to where a choice just turns
constexpr double kBehind = 1.001;  // and as far behind that point
constexpr std::size_t kMostKeyMoves = 64;

// Scores of `down` lowered, of `up` raised.
struct Move {
  Chosen down, up;
};

class TieFinder {
 public:
  TieFinder(const WatchedChoice& choice, std::size_t token)
      : choice_(choice), token_(token), scores_(choice.scores[token]), chosen_(chosen(scores_)) {}

  std::vector<ChoiceTie> find(const ChoiceErrors& errors) const {
    std::vector<ChoiceTie> ties;
    const double error = errors.at(token_);
    if (!(error > 0) || chosen_of(everything(), error) == chosen_) return ties;
    std::set<Chosen> seen = {chosen_};
    for (const Move& move : moves(error)) {
      const Chosen at_most = chosen_of(move, error);
      if (!seen.insert(at_most).second) continue;
      ties.push_back(nearest(move, error, [&](const Chosen& now) { return now == at_most; }));
      ChoiceTie first = nearest(move, error, [&](const Chosen& now) { return now != chosen_; });
      if (seen.insert({first.turned.chosen.begin(), first.turned.chosen.end()}).second)
        ties.push_back(std::move(first));
    }
    for (const ChoiceErrors::Turned& turned : errors.tokens[token_].turned) add_plain(turned, error, ties);
    return ties;
  }

 private:
  Chosen chosen(std::span<const double> scores) const {
    const std::vector<std::int32_t> all = choice_.choose(scores);
    return {all.begin(), all.end()};
  }
  std::vector<double> moved(const Move& move, double by) const {
    std::vector<double> scores(scores_.begin(), scores_.end());
    for (const std::int32_t i : move.down) scores[static_cast<std::size_t>(i)] -= by;
    for (const std::int32_t i : move.up) scores[static_cast<std::size_t>(i)] += by;
    return scores;
  }
  Chosen chosen_of(const Move& move, double by) const { return chosen(moved(move, by)); }

  // All chosen ones down, all others up: where that turns nothing, nothing less does.
  Move everything() const {
    Move move = {chosen_, {}};
    for (std::size_t i = 0; i < scores_.size(); ++i)
      if (const auto id = static_cast<std::int32_t>(i); !chosen_.contains(id)) move.up.insert(id);
    return move;
  }

  std::vector<Move> moves(double error) const {
    if (choice_.kind == ChoiceKind::keys) return moves_of_keys(error);
    std::vector<Move> all;
    const Chosen others = everything().up;
    for (const std::int32_t down : chosen_)
      for (const std::int32_t up : others) all.push_back({{down}, {up}});
    const std::size_t size = scores_.size() / choice_.groups;
    for (std::size_t out = 0; choice_.groups > 1 && out < choice_.groups; ++out)
      for (std::size_t in = 0; in < choice_.groups; ++in)
        if (in != out) all.push_back({group(out, size), group(in, size)});
    return all;
  }
  // Keys are chosen by nothing but their scores, and there may be thousands: the nearest pairs are of the last that were chosen and
  // the first that were not.
  std::vector<Move> moves_of_keys(double error) const {
    const auto score = [&](std::int32_t i) {
      const double own = scores_[static_cast<std::size_t>(i)];
      return std::isnan(own) ? std::numeric_limits<double>::infinity() : own;  // chosen before all others
    };
    const Chosen up = everything().up;
    std::vector<std::int32_t> last(chosen_.begin(), chosen_.end()), first(up.begin(), up.end());
    std::sort(last.begin(), last.end(), [&](auto a, auto b) { return score(a) < score(b); });
    std::sort(first.begin(), first.end(), [&](auto a, auto b) { return score(a) > score(b); });
    last.resize(std::min(last.size(), kMostKeyMoves));
    first.resize(std::min(first.size(), kMostKeyMoves));
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    for (const std::int32_t out : last)
      for (const std::int32_t in : first)
        if (score(out) - score(in) <= 2 * error) pairs.emplace_back(out, in);
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
      return score(a.first) - score(a.second) < score(b.first) - score(b.second);
    });
    pairs.resize(std::min(pairs.size(), kMostKeyMoves));
    std::vector<Move> all;
    for (const auto& pair : pairs) all.push_back({{pair.first}, {pair.second}});
    return all;
  }
  static Chosen group(std::size_t index, std::size_t size) {
    Chosen members;
    for (std::size_t i = index * size; i < (index + 1) * size; ++i)
      members.insert(static_cast<std::int32_t>(i));
    return members;
  }

  // The plain computation's own: of one in place of another, which is known by then, or of several.
  void add_plain(const ChoiceErrors::Turned& turned, double error, std::vector<ChoiceTie>& ties) const {
    if (turned.move.size() != scores_.size()) return;
    ChoiceTie tie = moved_so(turned.move, error);
    if (tie.moved > error || tie.left.empty()) return;
    const auto known = std::find_if(ties.begin(), ties.end(), [&](const ChoiceTie& other) {
      return other.turned.chosen == tie.turned.chosen;
    });
    (known == ties.end() ? ties.emplace_back(std::move(tie)) : *known).as_plain = true;
  }

  // As little of the move as makes the choice such a one.
  template <class Such>
  ChoiceTie nearest(const Move& move, double error, const Such& such) const {
    double kept = 0, turned = error;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (kept + turned) / 2;
      (such(chosen_of(move, middle)) ? turned : kept) = middle;
    }
    std::vector<double> by = moved(move, std::min(error, turned * kBehind));
    for (std::size_t i = 0; i < scores_.size(); ++i) by[i] -= scores_[i];
    return moved_so(by, error);
  }

  ChoiceTie moved_so(const std::vector<double>& by, double error) const {
    ChoiceTie tie;
    tie.error = error;
    tie.turned.move = by;
    std::vector<double> scores(scores_.begin(), scores_.end());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      scores[i] += by[i];
      tie.moved = std::max(tie.moved, std::abs(by[i]));
    }
    const Chosen now = chosen(scores);
    tie.turned.chosen.assign(now.begin(), now.end());
    std::set_difference(chosen_.begin(), chosen_.end(), now.begin(), now.end(), std::back_inserter(tie.left));
    std::set_difference(now.begin(), now.end(), chosen_.begin(), chosen_.end(),
                        std::back_inserter(tie.taken));
    return tie;
  }

  const WatchedChoice& choice_;
  std::size_t token_;
  std::span<const double> scores_;
  Chosen chosen_;
};

}  // namespace

std::vector<ChoiceTie> ties_of(std::span<const WatchedChoice> choices, std::size_t choice, std::size_t token,
                               const ChoiceErrors& errors) {
  if (choices[choice].scores[token].empty() || token >= errors.tokens.size()) return {};
  std::vector<ChoiceTie> ties = TieFinder(choices[choice], token).find(errors);
  for (ChoiceTie& tie : ties) {
    tie.turned.choice = choice;
    tie.turned.token = token;
    tie.kind = choices[choice].kind;
    tie.name = choices[choice].name;
  }
  std::stable_sort(ties.begin(), ties.end(),
                   [](const ChoiceTie& a, const ChoiceTie& b) { return a.moved < b.moved; });
  return ties;
}

std::string describe_tie(const ChoiceTie& tie) {
  const bool experts = tie.kind == ChoiceKind::experts;
  return fmt::format(
      "{}, token {}: {}{} {} in place of {} (a tie is {:.2g} away, and {} may be off by {:.2g})", tie.name,
      tie.turned.token, experts ? "expert" : "key", tie.taken.size() == 1 ? "" : "s",
      fmt::join(tie.taken, ", "), fmt::join(tie.left, ", "), tie.moved, experts ? "logits" : "scores",
      tie.error);
}

}  // namespace assay::logprobs
