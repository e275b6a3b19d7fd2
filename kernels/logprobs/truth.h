// What a model says of given texts: in float64, and how far from it the plain computation in a stated precision comes
// out, token by token (kernels/model_compare/plain_ops.h); in 8 bits by blocks as llama.cpp has them.
//
//   TruthMaker maker(weights, {Precision::bf16}, jobs);
//   TextTruth truth = maker.read(ids, asked);          // asked[t]: sorted ids whose ln p is wanted at t
//   truth.tokens[5].logprob;                            // ln p(token 5 | tokens 0 … 4)
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/logprobs/choice_ops.h"
#include "kernels/model_compare/plain_ops.h"
#include "refimpl/models/model.h"

namespace assay::logprobs {

// The plain computation's error at one place.
struct PlainError {
  std::array<double, PlainOps::kOrders> own{};  // of the text's own token, in each order of sums
  std::array<bool, PlainOps::kOrders>
      turned{};       // it chose other experts or keys than the truth (choice_ops.h)
  double spread = 0;  // root mean square over the vocabulary and the orders
};

struct TrueToken {
  double logprob = 0;
  std::uint64_t rank = 1;
  TokenId first = 0;                              // the likeliest
  double largest_logit = 0;                       // in absolute value: what a log-softmax in float32 rounds
  std::vector<std::pair<TokenId, double>> asked;  // ln p of the ids in asked[t], which are sorted
  std::vector<PlainError> plain;                  // of each precision
  std::optional<double> of(TokenId id) const;     // of those asked for
};

struct TextTruth {
  std::vector<TrueToken> tokens;                   // the first is empty: nothing stands before it
  std::vector<std::vector<ChoiceErrors>> choices;  // of each precision, of each router and indexer
  std::size_t unkept = 0;  // choices of a token by scores that were not kept (ChoiceOps::unkept)
};

class TruthMaker {
 public:
  // `weights` outlives it. Throws Error::input for a family without a forward rule.
  TruthMaker(const Weights& weights, std::vector<Precision> precisions, int jobs);
  const std::vector<Precision>& precisions() const { return precisions_; }
  const LanguageModel& model() const { return *model_; }
  // Those of its routers that choose by a gate (refimpl/ops/moe_gate.cpp) and its indexers (index.cpp) are looked after.
  // Throws Error::input where an id is beyond the vocabulary, the text longer than the context, or logits are not finite.
  TextTruth read(std::span<const TokenId> ids, std::span<const std::vector<TokenId>> asked);

  // float64 alone, with some choices turned.
  struct OtherTruth {
    std::vector<TrueToken> tokens;  // without errors of the plain computation
    std::vector<WatchedChoice> choices;
  };
  OtherTruth read_otherwise(std::span<const TokenId> ids, std::span<const std::vector<TokenId>> asked,
                            std::span<const TurnedChoice> turned);

 private:
  struct Reader;
  template <class Use>
  void tell(Reader& truth, std::span<const TokenId> ids, std::span<const std::vector<TokenId>> asked,
            std::vector<TrueToken>& tokens, const Use& use);

  std::vector<Precision> precisions_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Ops> truth_;
  std::vector<std::unique_ptr<Ops>> plain_;  // kOrders of each precision
};

}  // namespace assay::logprobs
