#include "kernels/logprobs/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/scoring.h"

namespace assay::logprobs {
namespace {

// ln p of every token, in place of logits.
void to_logprobs(std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - largest);
  const double norm = largest + std::log(sum);
  for (double& x : row) x -= norm;
}

void require_finite(std::span<const double> row, std::size_t token) {
  for (const double x : row)
    if (!std::isfinite(x))
      throw Error::input(
          fmt::format("the model's logits of token {} are not finite: no truth comes of it", token));
}

double largest_of(std::span<const double> row) {
  double most = 0;
  for (const double x : row) most = std::max(most, std::abs(x));
  return most;
}

TrueToken said_of(std::span<const double> row, TokenId id, const std::vector<TokenId>& asked) {
  TrueToken token;
  token.logprob = row[id];
  for (std::size_t i = 0; i < row.size(); ++i) {
    token.rank += row[i] > row[id] ? 1 : 0;
    if (row[i] > row[token.first]) token.first = static_cast<TokenId>(i);
  }
  for (const TokenId other : asked) {
    if (other >= row.size())
      throw Error::input(fmt::format("candidate {} is beyond the vocabulary of {}", other, row.size()));
    token.asked.emplace_back(other, row[other]);
  }
  return token;
}

double squares_apart(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

std::optional<double> TrueToken::of(TokenId id) const {
  const auto at = std::lower_bound(asked.begin(), asked.end(), id,
                                   [](const auto& one, TokenId wanted) { return one.first < wanted; });
  if (at == asked.end() || at->first != id) return std::nullopt;
  return at->second;
}

TruthMaker::TruthMaker(const Weights& weights, std::vector<Precision> precisions, int jobs)
    : precisions_(std::move(precisions)),
      model_(make_model(weights, {})),
      truth_(std::make_unique<ReferenceOps>(Arithmetic{Precision::f64}, jobs)) {
  for (const Precision precision : precisions_)
    for (int order = 0; order < PlainOps::kOrders; ++order)
      plain_.push_back(std::make_unique<PlainOps>(Arithmetic{precision}, jobs, order, QuantizationNoises{},
                                                  operands_of_ggml));
}

// One computation that reads a text, and looks after its choices meanwhile.
struct TruthMaker::Reader {
  Reader(const LanguageModel& model, Ops& inner, std::span<const TokenId> ids)
      : ops(inner, ids.size()), scorer(model, ops, ids, Taps(ops)) {}
  ChoiceOps ops;
  TextScorer scorer;
};

// Calls use(at, rows): ln p of all tokens behind `at` and some positions more, whose truth is in `tokens` by then.
template <class Use>
void TruthMaker::tell(Reader& truth, std::span<const TokenId> ids,
                      std::span<const std::vector<TokenId>> asked, std::vector<TrueToken>& tokens,
                      const Use& use) {
  const std::size_t vocabulary = model_->vocabulary();
  for (std::size_t at = truth.scorer.first();
       at < truth.scorer.end() && at + 1 < ids.size() && !interrupted();) {
    const std::size_t count =
        std::min({truth.scorer.end() - at, ids.size() - 1 - at, rows_at_once(vocabulary)});
    std::vector<double> rows = truth.scorer.logits(at, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<double> row = std::span(rows).subspan(i * vocabulary, vocabulary);
      require_finite(row, at + i + 1);
      const double largest = largest_of(row);
      to_logprobs(row);
      TrueToken& token = tokens[at + i + 1];
      token = said_of(row, ids[at + i + 1], asked[at + i + 1]);
      token.largest_logit = largest;
    }
    use(at, std::span<const double>(rows));
    at += count;
  }
}

TruthMaker::OtherTruth TruthMaker::read_otherwise(std::span<const TokenId> ids,
                                                  std::span<const std::vector<TokenId>> asked,
                                                  std::span<const TurnedChoice> turned) {
  OtherTruth other;
  other.tokens.resize(ids.size());
  Reader truth(*model_, *truth_, ids);
  truth.ops.record(other.choices);
  truth.ops.turn(turned);
  while (truth.scorer.read()) tell(truth, ids, asked, other.tokens, [](auto, auto) {});
  return other;
}

TextTruth TruthMaker::read(std::span<const TokenId> ids, std::span<const std::vector<TokenId>> asked) {
  const std::size_t vocabulary = model_->vocabulary();
  TextTruth said;
  said.tokens.resize(ids.size());
  said.choices.resize(precisions_.size());
  std::vector<WatchedChoice> choices;
  Reader truth(*model_, *truth_, ids);
  truth.ops.record(choices);
  std::vector<std::unique_ptr<Reader>> plain;
  for (std::size_t p = 0; p < plain_.size(); ++p) {
    plain.push_back(std::make_unique<Reader>(*model_, *plain_[p], ids));
    plain.back()->ops.hold_against(choices, said.choices[p / PlainOps::kOrders]);
  }
  while (truth.scorer.read()) {
    for (const auto& reader : plain)
      if (!reader->scorer.read()) return said;
    tell(truth, ids, asked, said.tokens, [&](std::size_t at, std::span<const double> rows) {
      const std::size_t count = rows.size() / vocabulary;
      for (std::size_t i = 0; i < count; ++i) said.tokens[at + i + 1].plain.resize(precisions_.size());
      for (std::size_t p = 0; p < plain.size(); ++p) {
        std::vector<double> others = plain[p]->scorer.logits(at, count);
        for (std::size_t i = 0; i < count; ++i) {
          const std::span<double> row = std::span(others).subspan(i * vocabulary, vocabulary);
          const std::span<const double> right = rows.subspan(i * vocabulary, vocabulary);
          to_logprobs(row);
          PlainError& error = said.tokens[at + i + 1].plain[p / PlainOps::kOrders];
          error.own[p % PlainOps::kOrders] = row[ids[at + i + 1]] - right[ids[at + i + 1]];
          error.turned[p % PlainOps::kOrders] = plain[p]->ops.turned(at + i);
          error.spread +=
              squares_apart(row, right) / static_cast<double>(vocabulary) / PlainOps::kOrders;  // squared yet
        }
      }
    });
  }
  said.unkept = truth.ops.unkept();
  for (TrueToken& token : said.tokens)
    for (PlainError& error : token.plain) error.spread = std::sqrt(error.spread);
  return said;
}

}  // namespace assay::logprobs
