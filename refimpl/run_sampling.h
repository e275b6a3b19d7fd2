// How `assay run` chooses tokens and where its texts end: the options, and what they make of a request.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "refimpl/engine/engine.h"
#include "refimpl/grammar/token_grammar.h"
#include "refimpl/run_model.h"
#include "refimpl/run_settings.h"
#include "refimpl/sampling/stop_text.h"
#include "refimpl/tokenizers/token_stream.h"

namespace assay {

void add_sampling_options(CLI::App& command, RunSettings& settings);
// Throws Error::usage for what cannot be, or has no say; reads --logit-bias into the params.
void check_sampling_options(RunSettings& settings);

// A text as its user sees it: whole characters, up to the first stop string.
class ShownText {
 public:
  ShownText(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : stream_(tokenizer), stop_(stops) {}
  std::string push(TokenId id) { return stop_.push(stream_.push(id)); }
  std::string finish() {
    std::string text = stop_.push(stream_.finish());
    return text + stop_.finish();
  }
  bool stopped() const { return stop_.stopped(); }

 private:
  TokenStream stream_;
  StopText stop_;
};

// What all the requests of a run have in common; the grammar is made ready once. Outlives the texts.
class RequestRules {
 public:
  RequestRules(OpenModel& model, const RunSettings& settings);
  void apply(GenerationRequest& request) const;

 private:
  const RunSettings& settings_;
  SamplingParams sampling_;
  const Tokenizer* tokenizer_ = nullptr;  // where stop strings or a grammar ask for it
  std::shared_ptr<grammar::TokenGrammar> grammar_;
};

}  // namespace assay
