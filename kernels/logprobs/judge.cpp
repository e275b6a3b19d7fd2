#include "kernels/logprobs/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/text.h"
#include "kernels/logprobs/align.h"

namespace assay::logprobs {
namespace {

constexpr double kYardstick = 2, kOfMixtures = 3, kSpreads = 6, kRoundings = 4;
constexpr std::size_t kEnoughTokens =
    16;  // for a root mean square of the plain computation's to say something

// A token that is scored, and what is true of it.
struct ScoredPlace {
  std::size_t text, position;
  const SavedToken* token;
  const TrueToken* truth;
};

std::vector<ScoredPlace> scored_places(const SideTruths& side) {
  std::vector<ScoredPlace> places;
  for (std::size_t t = 0; t < side.truths.size(); ++t) {
    if (side.truths[t] == nullptr) continue;
    const std::vector<SavedToken>& tokens = side.saved->texts[t].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t at = i + side.before[t];
      if (!tokens[i].logprob || at == 0 || at >= side.truths[t]->tokens.size()) continue;
      places.push_back({t, i, &tokens[i], &side.truths[t]->tokens[at]});
    }
  }
  return places;
}

double rounding_of_logarithms(const TrueToken& truth, Precision precision) {
  const double u = unit_roundoff(precision == Precision::f64 ? ElementType::F64 : ElementType::F32);
  return kRoundings * u * (truth.largest_logit + std::abs(truth.logprob));
}

// KL of the truth to the side, over the candidates that were saved.
std::optional<double> kl_to_truth(const SavedToken& token, const TrueToken& truth) {
  std::vector<std::pair<double, double>> shared;
  for (const SavedCandidate& candidate : token.top)
    if (const auto right = candidate.id ? truth.of(*candidate.id) : std::nullopt)
      shared.emplace_back(*right, candidate.logprob);
  if (shared.empty()) return std::nullopt;
  return lumped_kl(shared);
}

class SideJudge {
 public:
  SideJudge(const SideTruths& side, Precision precision)
      : side_(side), precision_(precision), places_(scored_places(side)) {}

  SideVerdict run() {
    measure_plain();
    std::vector<LogprobPair> pairs;
    double squares = 0;
    for (const ScoredPlace& place : places_) {
      const JudgedToken& judged = verdict_.tokens.emplace_back(judged_of(place));
      const double beyond_saving = std::max(0.0, judged.error - place.token->resolution);
      squares += beyond_saving * beyond_saving;
      pairs.push_back(pair_of(place));
      if (!verdict_.worst || !(judged.ratio <= verdict_.tokens[*verdict_.worst].ratio))
        verdict_.worst = verdict_.tokens.size() - 1;
      if (judged.ratio <= 1) continue;
      if (!verdict_.first_beyond) verdict_.first_beyond = verdict_.tokens.size() - 1;
      ++verdict_.beyond;
    }
    verdict_.figures = pair_figures(pairs, std::nullopt);
    if (!places_.empty()) verdict_.rms = std::sqrt(squares / static_cast<double>(places_.size()));
    decide();
    return std::move(verdict_);
  }

 private:
  const PlainError& plain(const ScoredPlace& place) const { return place.truth->plain[side_.precision]; }

  bool is_mixture() const {
    return std::any_of(side_.truths.begin(), side_.truths.end(), [&](const TextTruth* truth) {
      if (truth == nullptr || truth->choices.empty()) return false;
      const std::vector<ChoiceErrors>& choices = truth->choices[side_.precision];
      return std::any_of(choices.begin(), choices.end(),
                         [](const ChoiceErrors& of) { return of.kind == ChoiceKind::experts; });
    });
  }

  void measure_plain() {
    std::array<double, PlainOps::kOrders> squares{};
    double floors = 0;
    for (const ScoredPlace& place : places_) {
      for (std::size_t o = 0; o < squares.size(); ++o) {
        const double error = std::abs(plain(place).own[o]);
        squares[o] += error * error;
        if (!plain(place).turned[o]) verdict_.plain_largest = std::max(verdict_.plain_largest, error);
      }
      const double floor = rounding_of_logarithms(*place.truth, precision_);
      floors += floor * floor;
    }
    const double n = std::max<double>(1, static_cast<double>(places_.size()));
    const double largest = *std::max_element(squares.begin(), squares.end());
    verdict_.rms_limit = kYardstick * std::sqrt(largest / n) + std::sqrt(floors / n);
  }

  JudgedToken judged_of(const ScoredPlace& place) const {
    JudgedToken judged = {place.text, place.position, *place.token->logprob, place.truth->logprob};
    judged.error = error_of(*place.token, place.truth->logprob);
    const double largest = (is_mixture() ? kOfMixtures : kYardstick) * verdict_.plain_largest,
                 rounded = rounding_of_logarithms(*place.truth, precision_) + place.token->resolution;
    judged.budget = std::max(largest, kSpreads * plain(place).spread) + rounded;
    const auto& turned = plain(place).turned;
    const bool any = std::find(turned.begin(), turned.end(), true) != turned.end();
    judged.steady_budget = any ? largest + rounded : judged.budget;
    judged.ratio = judged.error == 0 ? 0 : judged.error / judged.budget;
    if (std::isnan(judged.ratio)) judged.ratio = std::numeric_limits<double>::infinity();
    judged.rank = rank_of(*place.token);
    judged.true_rank = place.truth->rank;
    return judged;
  }

  LogprobPair pair_of(const ScoredPlace& place) const {
    LogprobPair pair = {place.text, place.position, place.truth->logprob, *place.token->logprob};
    if (error_of(*place.token, place.truth->logprob) == 0) pair.b = pair.a;
    pair.rank_a = place.truth->rank;
    pair.rank_b = rank_of(*place.token);
    if (const SavedCandidate* first = first_of(*place.token); first != nullptr && first->id)
      pair.same_first = *first->id == place.truth->first;
    pair.kl = kl_to_truth(*place.token, *place.truth);
    return pair;
  }

  void decide() {
    SideVerdict& v = verdict_;
    if (v.tokens.empty()) {
      v.status = CaseStatus::mistrusted;
      v.reasons.emplace_back("no log-probability of a token could be held against the model's");
      return;
    }
    if (std::all_of(v.tokens.begin(), v.tokens.end(), [&](const JudgedToken& t) { return t.value == 0; })) {
      v.status = CaseStatus::mistrusted;
      v.reasons.emplace_back("all log-probabilities are 0: they were not computed");
      return;
    }
    v.spread_out = v.tokens.size() >= kEnoughTokens && !(v.rms <= v.rms_limit);
    if (v.first_beyond) {
      v.status = CaseStatus::failed;
      v.reasons.push_back(fmt::format("{} of {} tokens beyond their budgets, the first: text {}", v.beyond,
                                      v.tokens.size(),
                                      describe_token(v.tokens[*v.first_beyond], *side_.saved)));
    } else if (v.spread_out) {
      v.status = CaseStatus::failed;
      v.reasons.push_back(fmt::format(
          "no single token is beyond its budget, and together they are off by {:.3g} (root mean square), "
          "where {:.3g} may be",
          v.rms, v.rms_limit));
    }
    if (side_.saved->processed) {
      v.status = CaseStatus::mistrusted;
      v.reasons.insert(v.reasons.begin(), "probabilities after temperature and samplers are not the model's");
    }
    if (v.status == CaseStatus::failed) v.hints = explain_errors(side_, v.tokens);
  }

  const SideTruths& side_;
  Precision precision_;
  std::vector<ScoredPlace> places_;
  SideVerdict verdict_;
};

}  // namespace

double error_of(const SavedToken& token, double truth) {
  if (token.at_most && truth <= *token.logprob) return 0;
  return *token.logprob == truth ? 0 : std::abs(*token.logprob - truth);
}

SideVerdict judge_side(const SideTruths& side, Precision precision) {
  return SideJudge(side, precision).run();
}

std::string describe_token(const JudgedToken& token, const SavedResponses& saved) {
  std::string text = fmt::format("{}, token {}: ln p {:.6g}, truth {:.6g}, {:.3g} × its budget of {:.2g}",
                                 escape_for_terminal(saved.texts[token.text].name), token.position,
                                 token.value, token.truth, token.ratio, token.budget);
  if (token.rank && *token.rank != token.true_rank)
    text += fmt::format(", rank {} in place of {}", *token.rank, token.true_rank);
  return text;
}

}  // namespace assay::logprobs
