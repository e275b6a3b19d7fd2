// Who guesses: the text itself (lookup_drafter.h), a smaller model (model_drafter.h), the model's own layers for
// multi-token prediction (layer_drafter.h). What they say is checked (acceptance.h), so that a bad guess costs a row and
// nothing else.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "refimpl/ops/matrix.h"
#include "refimpl/speculation/acceptance.h"

namespace assay {

struct DraftRequest {
  std::span<const TokenId> text;       // prompt and what was made
  std::span<const std::size_t> shape;  // of the tree (TreeShape)
  const AcceptanceRule& rule;
  const AcceptanceRule::Place& place;  // behind the text
};

// Of one text, which only grows.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual GuessTree guess(const DraftRequest& request) = 0;
  // What the target's head saw of tokens first, first + 1 … of the text, whose rows were kept. Told in their order; what was
  // known from others' blocks is left out.
  virtual void see(std::span<const TokenId> /*text*/, std::size_t /*first*/, const Matrix& /*hidden*/) {}
  virtual bool wants_hidden() const { return false; }

  // What it keeps of the text's first `end` tokens, a whole number of blocks, beside the last of these: so much that a drafter
  // of another text that begins with them can go on from it. Asked of each block in turn, when the tokens were seen; none: it
  // keeps nothing there.
  using Beside = std::shared_ptr<const std::vector<Matrix>>;
  virtual Beside beside(std::span<const TokenId> /*text*/, std::size_t /*end*/,
                        std::size_t /*block_tokens*/) {
    return nullptr;
  }
  // The text begins with these blocks, `end` tokens, which were known from others.
  virtual void resume(std::span<const Beside> /*blocks*/, std::size_t /*end*/) {}
  // Likewise, of one block as long as all of them, which nobody else goes on from.
  virtual void take_over(const Beside& /*whole*/, std::size_t /*end*/) {}
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;
  virtual std::unique_ptr<Drafter> start() const = 0;  // of a new text
};

// Says what comes behind a way of guesses, one step deeper or back at a time.
class DraftWalk {
 public:
  virtual ~DraftWalk() = default;
  virtual std::vector<double> enter(
      TokenId guess) = 0;  // the draft's logits behind it; none: it has no more to say
  virtual void leave() = 0;
};
// `logits`: the draft's, behind the text itself.
GuessTree grow_tree(const DraftRequest& request, std::span<const double> logits, DraftWalk& walk);

}  // namespace assay
