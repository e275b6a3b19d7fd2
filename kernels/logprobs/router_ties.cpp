#include "kernels/logprobs/router_ties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace assay::logprobs {
namespace {

using Experts = std::set<std::int32_t>;
constexpr int kHalvings = 24;      // of the error, down to where a choice just turns
constexpr double kBehind = 1.001;  // and as far behind that point

// Logits of `down` lowered, of `up` raised.
struct Move {
  Experts down, up;
};

class TieFinder {
 public:
  TieFinder(const WatchedRouter& router, std::size_t token)
      : router_(router), logits_(router.row(token)), chosen_(chosen(logits_)) {}

  std::vector<RouterTie> find(double error) const {
    std::vector<RouterTie> ties;
    if (!(error > 0) || chosen_of(everything(), error) == chosen_) return ties;
    std::set<Experts> seen = {chosen_};
    for (const Move& move : moves()) {
      if (!seen.insert(chosen_of(move, error)).second) continue;
      ties.push_back(nearest(move, error));
    }
    return ties;
  }

 private:
  Experts chosen(std::span<const double> logits) const {
    const Routing routing = choose_experts(router_, logits);
    return {routing.experts.begin(), routing.experts.end()};
  }
  std::vector<double> moved(const Move& move, double by) const {
    std::vector<double> logits(logits_.begin(), logits_.end());
    for (const std::int32_t e : move.down) logits[static_cast<std::size_t>(e)] -= by;
    for (const std::int32_t e : move.up) logits[static_cast<std::size_t>(e)] += by;
    return logits;
  }
  Experts chosen_of(const Move& move, double by) const { return chosen(moved(move, by)); }

  // All chosen ones down, all others up: where that turns nothing, nothing less does.
  Move everything() const {
    Move move = {chosen_, {}};
    for (std::size_t e = 0; e < router_.experts; ++e)
      if (const auto id = static_cast<std::int32_t>(e); !chosen_.contains(id)) move.up.insert(id);
    return move;
  }

  std::vector<Move> moves() const {
    std::vector<Move> all;
    const Experts others = everything().up;
    for (const std::int32_t down : chosen_)
      for (const std::int32_t up : others) all.push_back({{down}, {up}});
    const std::size_t size = router_.experts / router_.rule.groups;
    for (std::size_t out = 0; router_.rule.groups > 1 && out < router_.rule.groups; ++out)
      for (std::size_t in = 0; in < router_.rule.groups; ++in)
        if (in != out) all.push_back({group(out, size), group(in, size)});
    return all;
  }
  static Experts group(std::size_t index, std::size_t size) {
    Experts experts;
    for (std::size_t e = index * size; e < (index + 1) * size; ++e)
      experts.insert(static_cast<std::int32_t>(e));
    return experts;
  }

  // As little of the move as makes the choice another.
  RouterTie nearest(const Move& move, double error) const {
    double kept = 0, turned = error;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (kept + turned) / 2;
      (chosen_of(move, middle) == chosen_ ? kept : turned) = middle;
    }
    RouterTie tie;
    tie.moved = std::min(error, turned * kBehind);
    tie.error = error;
    tie.turned.move = moved(move, tie.moved);
    const Experts now = chosen(tie.turned.move);
    tie.turned.experts.assign(now.begin(), now.end());
    for (std::size_t e = 0; e < logits_.size(); ++e) tie.turned.move[e] -= logits_[e];
    std::set_difference(chosen_.begin(), chosen_.end(), now.begin(), now.end(), std::back_inserter(tie.left));
    std::set_difference(now.begin(), now.end(), chosen_.begin(), chosen_.end(),
                        std::back_inserter(tie.taken));
    return tie;
  }

  const WatchedRouter& router_;
  std::span<const double> logits_;
  Experts chosen_;
};

}  // namespace

std::vector<RouterTie> ties_of(std::span<const WatchedRouter> routers, std::size_t router, std::size_t token,
                               double error) {
  std::vector<RouterTie> ties = TieFinder(routers[router], token).find(error);
  for (RouterTie& tie : ties) {
    tie.turned.router = router;
    tie.turned.token = token;
    tie.router = routers[router].name;
  }
  std::stable_sort(ties.begin(), ties.end(),
                   [](const RouterTie& a, const RouterTie& b) { return a.moved < b.moved; });
  return ties;
}

std::string describe_tie(const RouterTie& tie) {
  return fmt::format(
      "{}, token {}: expert{} {} in place of {} (a tie is {:.2g} away, and logits may be off by {:.2g})",
      tie.router, tie.turned.token, tie.taken.size() == 1 ? "" : "s", fmt::join(tie.taken, ", "),
      fmt::join(tie.left, ", "), tie.moved, tie.error);
}

}  // namespace assay::logprobs
