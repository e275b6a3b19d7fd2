// Which token comes next where guesses stand: two rules, each with its own way to guess.
//
//   sample and match   the token is drawn as ever; a guess is right if it is that token. The text is that of plain sampling,
//                      token for token.
//   rejection          a guess x, drawn from the draft's law q, is kept with probability min(1, p(x) / q(x)); else p
//                      becomes max(p - q, 0), normalized, and the next guess at this place has its turn; after the last, the
//                      token is drawn from what is left. The text has the target's law; how often a guess is kept is
//                      1 - ½ Σ|p - q| for the first. p and q are the laws really drawn from: temperature, top-k, penalties,
//                      grammar and all are in.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "refimpl/sampling/draws.h"
#include "refimpl/sampling/sequence_sampler.h"
#include "refimpl/speculation/guess_tree.h"

namespace assay {

class AcceptanceRule {
 public:
  virtual ~AcceptanceRule() = default;

  // Where a text stands: what was pushed to the sampler, guesses found right in this step included.
  struct Place {
    const SequenceSampler& sampler;
    const Draws& draws;
    std::size_t kept = 0;  // guesses found right in this step
  };
  struct Chosen {
    TokenId token = 0;
    std::optional<std::size_t> guess;  // of `children`: it was right, and what it leads to counts
  };
  // `logits`: the target's; `children`: the guesses for this place.
  virtual Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                        const Place& place) const = 0;
  // Up to `count` guesses of a draft with these logits.
  virtual std::vector<Guess> pick(std::span<const double> logits, std::size_t count,
                                  const Place& place) const = 0;
};

class SampleAndMatch : public AcceptanceRule {
 public:
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override;
  // The token that the target would draw if its law were this one, then the likeliest others.
  std::vector<Guess> pick(std::span<const double> logits, std::size_t count,
                          const Place& place) const override;
};

class RejectionSampling : public AcceptanceRule {
 public:
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override;
  // Drawn from the draft's law, each from what the ones before it left.
  std::vector<Guess> pick(std::span<const double> logits, std::size_t count,
                          const Place& place) const override;

 protected:
  // The target's law at this place.
  virtual std::vector<double> law(std::span<const double> logits, bool has_guesses, const Place& place) const;
};

// The token that plain decoding chooses.
TokenId plain_choice(std::span<const double> logits, const AcceptanceRule::Place& place);

}  // namespace assay
