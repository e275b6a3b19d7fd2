#include "refimpl/speculation/drafter.h"

namespace assay {
namespace {

class TreeGrower {
 public:
  TreeGrower(const DraftRequest& request, DraftWalk& walk)
      : request_(request), walk_(walk), sampler_(request.place.sampler) {}

  void grow(std::span<const double> logits, std::size_t parent, std::size_t level) {
    if (level >= request_.shape.size() || sampler_.complete(logits.size())) return;
    const AcceptanceRule::Place place = {sampler_, request_.place.draws, level};
    const std::size_t first = tree_.size();
    for (Guess& guess : request_.rule.pick(logits, request_.shape[level], place)) {
      guess.parent = parent;
      tree_.guesses.push_back(std::move(guess));
    }
    if (level + 1 == request_.shape.size()) return;
    for (std::size_t i = first, end = tree_.size(); i < end; ++i) {
      const TokenId token = tree_.guesses[i].token;
      if (sampler_.ends(token)) continue;  // nothing comes behind it
      const std::vector<double> next = walk_.enter(token);
      sampler_.push(token);
      if (!next.empty()) grow(next, i + 1, level + 1);
      sampler_.pop(1);
      walk_.leave();
    }
  }
  GuessTree take() { return std::move(tree_); }

 private:
  const DraftRequest& request_;
  DraftWalk& walk_;
  SequenceSampler sampler_;
  GuessTree tree_;
};

}  // namespace

GuessTree grow_tree(const DraftRequest& request, std::span<const double> logits, DraftWalk& walk) {
  TreeGrower grower(request, walk);
  grower.grow(logits, 0, 0);
  return grower.take();
}

}  // namespace assay
