// A model opened for running, with the tokenizer beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/run_settings.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct OpenModel {
  OpenModel(const std::string& path, const RunSettings& settings);

  Weights weights;
  ModelOptions options;
  KernelSet kernels;
  Arithmetic arithmetic;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  double load_seconds = 0;

  // The tokenizer, loaded when first asked for. Throws Error::input where there is none, or one of another
  // model.
  const Tokenizer& tokenizer();
  // Tokens that end a text: the tokenizer's, and those of config.json and generation_config.json.
  std::vector<TokenId> stop_tokens();
  // "llama in f32, reference kernels"
  std::string title() const;

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
};

struct Prompt {
  std::string text;  // empty where tokens were given
  std::vector<TokenId> tokens;
};
// --prompt and --tokens, in this order; --chat applied. Throws Error::usage where neither was given, Error::input where
// one has a token that stands for an image.
std::vector<Prompt> read_prompts(OpenModel& model, const RunSettings& settings);

}  // namespace assay
