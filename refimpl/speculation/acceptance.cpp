#include "refimpl/speculation/acceptance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/sampling/rejection.h"

namespace assay {
namespace {

std::vector<double> law_of(const Guess& guess, std::size_t vocabulary) {
  if (!guess.law.empty()) return guess.law;
  std::vector<double> certain(vocabulary);
  certain.at(guess.token) = 1;
  return certain;
}

// Possible tokens, the likeliest first, without `but`.
std::vector<TokenId> likeliest_others(const std::vector<double>& logits, std::size_t count, TokenId but) {
  std::vector<TokenId> order;
  for (TokenId id = 0; id < logits.size(); ++id)
    if (id != but && logits[id] != -std::numeric_limits<double>::infinity()) order.push_back(id);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](TokenId a, TokenId b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  order.erase(end, order.end());
  return order;
}

}  // namespace

TokenId plain_choice(std::span<const double> logits, const AcceptanceRule::Place& place) {
  if (place.sampler.params().temperature == 0) return place.sampler.sample(logits);
  return place.draws.token(place.sampler.process(logits), place.sampler.position(), DrawPurpose::token);
}

AcceptanceRule::Chosen SampleAndMatch::choose(std::span<const double> logits,
                                              std::span<const Guess* const> children,
                                              const Place& place) const {
  Chosen chosen = {plain_choice(logits, place), std::nullopt};
  for (std::size_t i = 0; i < children.size() && !chosen.guess; ++i)
    if (children[i]->token == chosen.token) chosen.guess = i;
  return chosen;
}

std::vector<Guess> SampleAndMatch::pick(std::span<const double> logits, std::size_t count,
                                        const Place& place) const {
  std::vector<Guess> guesses = {{.token = plain_choice(logits, place)}};
  if (count < 2) return guesses;
  for (const TokenId id : likeliest_others(place.sampler.adjust(logits), count - 1, guesses.front().token))
    guesses.push_back({.token = id});
  return guesses;
}

std::vector<double> RejectionSampling::law(std::span<const double> logits, bool /*has_guesses*/,
                                           const Place& place) const {
  return place.sampler.process(logits);
}

AcceptanceRule::Chosen RejectionSampling::choose(std::span<const double> logits,
                                                 std::span<const Guess* const> children,
                                                 const Place& place) const {
  const std::uint64_t position = place.sampler.position();
  std::vector<double> p = law(logits, !children.empty(), place);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::vector<double> q = law_of(*children[i], p.size());
    const TokenId guessed = children[i]->token;
    if (place.draws.keeps(acceptance(p, q, guessed), position, i)) return {guessed, i};
    p = residual_law(p, q);
  }
  return {place.draws.token(p, position, children.empty() ? DrawPurpose::token : DrawPurpose::residual), {}};
}

std::vector<Guess> RejectionSampling::pick(std::span<const double> logits, std::size_t count,
                                           const Place& place) const {
  std::vector<double> q = place.sampler.process(logits);
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i) {
    const TokenId token = place.draws.token(q, place.sampler.position(), DrawPurpose::draft, i);
    guesses.push_back({.token = token, .law = q});
    q[token] = 0;
    double left = 0;
    for (const double x : q) left += x;
    if (!(left > 0)) break;
    for (double& x : q) x /= left;
  }
  return guesses;
}

}  // namespace assay
