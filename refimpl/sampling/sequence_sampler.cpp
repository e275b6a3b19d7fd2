#include "refimpl/sampling/sequence_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "refimpl/sampling/law.h"

namespace assay {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

void require_that(bool holds, const char* what) {
  if (!holds) throw Error::usage(what);
}

}  // namespace

void check_sampling(const SamplingParams& p) {
  require_that(p.temperature >= 0 && std::isfinite(p.temperature), "temperature is 0 or more");
  require_that(p.top_p > 0 && p.top_p <= 1, "top-p is above 0 and at most 1");
  require_that(p.min_p >= 0 && p.min_p <= 1, "min-p lies between 0 and 1");
  require_that(p.typical_p > 0 && p.typical_p <= 1, "typical-p is above 0 and at most 1");
  require_that(p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty),
               "the repetition penalty is above 0");
  require_that(std::abs(p.presence_penalty) <= 100 && std::abs(p.frequency_penalty) <= 100,
               "presence and frequency penalties lie between -100 and 100");
  for (const auto& [id, bias] : p.logit_bias)
    require_that(std::isfinite(bias) || bias == kForbidden, "a logit bias is a number, or -inf");
}

SequenceSampler::SequenceSampler(SamplingParams params, std::span<const TokenId> prompt,
                                 std::unique_ptr<TokenConstraint> constraint)
    : params_(std::move(params)), prompt_tokens_(prompt.size()), constraint_(std::move(constraint)) {
  check_sampling(params_);
  if (counts())
    for (const TokenId id : prompt) ++seen_[id].prompt;
}

SequenceSampler::SequenceSampler(const SequenceSampler& other)
    : params_(other.params_),
      prompt_tokens_(other.prompt_tokens_),
      constraint_(other.constraint_ ? other.constraint_->fork() : nullptr),
      outputs_(other.outputs_),
      seen_(other.seen_) {}

bool SequenceSampler::counts() const {
  return params_.repetition_penalty != 1 || params_.presence_penalty != 0 || params_.frequency_penalty != 0;
}

bool SequenceSampler::adjusts() const {
  return counts() || constraint_ || !params_.logit_bias.empty() || outputs_.size() < params_.min_tokens;
}

void SequenceSampler::push(TokenId id) {
  if (constraint_) constraint_->push(id);
  outputs_.push_back(id);
  if (counts()) ++seen_[id].output;
}

void SequenceSampler::pop(std::size_t count) {
  if (count > outputs_.size()) throw Error::internal("more tokens taken back than were there");
  if (constraint_) constraint_->pop(count);
  for (; count > 0; --count) {
    if (counts()) --seen_.at(outputs_.back()).output;
    outputs_.pop_back();
  }
}

bool SequenceSampler::ends(TokenId id) const {
  return std::find(params_.stop_tokens.begin(), params_.stop_tokens.end(), id) != params_.stop_tokens.end();
}

bool SequenceSampler::complete(std::size_t vocabulary) const {
  if (!constraint_) return false;
  TokenMask mask(vocabulary, true);
  constraint_->restrict(mask);
  return mask.empty();
}

void SequenceSampler::forbid(std::vector<double>& logits) const {
  const bool too_soon = outputs_.size() < params_.min_tokens && !params_.stop_tokens.empty();
  if (!constraint_ && !too_soon) return;
  if (constraint_) {
    TokenMask mask(logits.size(), true);
    constraint_->restrict(mask);
    for (TokenId id = 0; id < logits.size(); ++id)
      if (!mask.has(id)) logits[id] = kForbidden;
  }
  if (!too_soon) return;
  std::vector<double> going_on = logits;
  for (const TokenId id : params_.stop_tokens)
    if (id < going_on.size()) going_on[id] = kForbidden;
  // A constraint that leaves nothing but the end outweighs the wish for more.
  const bool possible =
      std::any_of(going_on.begin(), going_on.end(), [](double x) { return x != kForbidden; });
  if (possible || !constraint_) logits = std::move(going_on);
}

void SequenceSampler::penalize(std::vector<double>& logits) const {
  if (!counts()) return;
  for (const auto& [id, count] : seen_) {
    if (id >= logits.size() || count.prompt + count.output == 0) continue;
    double& logit = logits[id];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (count.output == 0) continue;
    logit -= params_.frequency_penalty * count.output;
    logit -= params_.presence_penalty;
  }
}

std::vector<double> SequenceSampler::adjust(std::span<const double> given) const {
  std::vector<double> logits(given.begin(), given.end());
  for (const auto& [id, bias] : params_.logit_bias)
    if (id < logits.size()) logits[id] += bias;
  forbid(logits);
  penalize(logits);
  return logits;
}

std::vector<double> SequenceSampler::process(std::span<const double> logits) const {
  return sampling_law(adjust(logits), params_);
}

TokenId SequenceSampler::sample(std::span<const double> logits) const {
  if (params_.temperature != 0) return draw(process(logits), position());
  return adjusts() ? likeliest(adjust(logits)) : likeliest(logits);  // all of the law is on it
}

TokenId SequenceSampler::draw(std::span<const double> law, std::uint64_t position) const {
  return token_at(law, params_.temperature == 0 ? 0 : uniform(position, DrawPurpose::token));
}

double SequenceSampler::uniform(std::uint64_t position, DrawPurpose purpose) const {
  return keyed_uniform({params_.seed, params_.sample}, position, purpose);
}

}  // namespace assay
