// The law of what the serving engine writes, by enumeration: its own code runs once for every way that its random decisions
// can go, and what each way weighs is added to the text that it gave. Held against the target's law, which is computed
// without an engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "refimpl/engine/serving.h"

namespace assay {

// A model of a few tokens: logits are numbers made of the whole text, which it reads back from its cache.
class StubModel : public LanguageModel {
 public:
  StubModel(std::uint64_t seed, std::size_t vocabulary) : seed_(seed), vocabulary_(vocabulary) {}
  std::size_t vocabulary() const override { return vocabulary_; }
  std::size_t context() const override { return 64; }
  std::vector<CacheWidth> cache_widths() const override { return {{.key_width = 1, .value_width = 1}}; }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;
  // Behind this text.
  std::vector<double> logits_behind(std::span<const TokenId> text) const;

 private:
  std::uint64_t seed_;
  std::size_t vocabulary_;
};

using TextLaw = std::map<std::vector<TokenId>, double>;

struct LawCase {
  std::string name;
  std::size_t vocabulary = 4, length = 3;
  SamplingParams sampling;
  SpeculationOptions speculation = {};  // without a source: a stub draft with another seed
  bool certain = false;                 // guesses without a law, as of prompt lookup
  bool same = false;                    // the draft is the target
  SchedulerOptions cache = {.blocks = 16, .block_tokens = 4};
  std::size_t beside = 0;  // tokens of a greedy text of the same prompt that comes before it
  ServingParts parts = {};
};
// Sampling rules of every kind, chains and trees.
std::vector<LawCase> law_cases(const std::shared_ptr<const AcceptanceRule>& rule);

struct LawResult {
  ServingCounts counts;       // of the last way
  std::size_t ways = 0;       // that the engine's decisions could go
  double error = 0;           // the largest of |written - truth| over texts, and of their sum from 1
  std::vector<TokenId> text;  // where it is
};
LawResult compare_laws(const LawCase& test);

TextLaw true_law(const StubModel& target, const SamplingParams& sampling, std::size_t length);

}  // namespace assay
