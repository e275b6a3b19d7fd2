// Chooses the tokens of one sequence.
//
//   SequenceSampler sampler(params, prompt);
//   while (...) {
//     const TokenId id = sampler.sample(logits);   // process(), then draw() at position()
//     sampler.push(id);
//   }
//
// What it chooses depends on the params, the prompt, the outputs pushed, and the logits: not on which numbers others
// drew, nor on how often it was asked. Speculation pushes its guesses, asks for each position's law, and takes back
// with pop() what was refused; a copy is a fork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "refimpl/sampling/constraint.h"
#include "refimpl/sampling/keyed_random.h"
#include "refimpl/sampling/sampling_params.h"

namespace assay {

class SequenceSampler {
 public:
  // Throws Error::usage for params that cannot be (check_sampling).
  SequenceSampler(SamplingParams params, std::span<const TokenId> prompt,
                  std::unique_ptr<TokenConstraint> constraint = nullptr);
  SequenceSampler(const SequenceSampler& other);
  SequenceSampler(SequenceSampler&&) noexcept = default;
  SequenceSampler& operator=(SequenceSampler&&) noexcept = default;

  const SamplingParams& params() const { return params_; }
  // The next token's place in the sequence: tokens of the prompt and outputs so far.
  std::uint64_t position() const { return prompt_tokens_ + outputs_.size(); }
  std::span<const TokenId> outputs() const { return outputs_; }

  void push(TokenId id);        // one more output; Error::input where the constraint forbids it
  void pop(std::size_t count);  // the last `count` outputs were never there
  bool ends(TokenId id) const;  // is it a stop token?
  // The constraint leaves nothing to come, not even a stop token: the text is whole.
  bool complete(std::size_t vocabulary) const;

  // After logit_bias, what may not come (-inf), and penalties; of these the logits' own law is log_probabilities().
  std::vector<double> adjust(std::span<const double> logits) const;
  // The law that the next token is drawn by; sums to 1. Throws Error::input where a logit is NaN or +inf, or no token
  // is possible.
  std::vector<double> process(std::span<const double> logits) const;
  TokenId draw(std::span<const double> law, std::uint64_t position) const;
  double uniform(std::uint64_t position, DrawPurpose purpose) const;
  TokenId sample(std::span<const double> logits) const;

 private:
  void forbid(std::vector<double>& logits) const;
  void penalize(std::vector<double>& logits) const;
  bool counts() const;   // has any rule a use for the counts?
  bool adjusts() const;  // does any rule change the logits?

  SamplingParams params_;
  std::size_t prompt_tokens_ = 0;
  std::unique_ptr<TokenConstraint> constraint_;
  std::vector<TokenId> outputs_;
  // How often a token is in the prompt, and in the output.
  struct Counts {
    std::uint32_t prompt = 0, output = 0;
  };
  std::unordered_map<TokenId, Counts> seen_;
};

}  // namespace assay
