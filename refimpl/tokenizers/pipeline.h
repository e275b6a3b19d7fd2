// The tokenizer most vocabularies share: added tokens are found, the rest is normalized, cut into words, and
// each word is looked up; special tokens are put around it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "refimpl/tokenizers/added_tokens.h"
#include "refimpl/tokenizers/decoder.h"
#include "refimpl/tokenizers/normalizer.h"
#include "refimpl/tokenizers/pre_tokenizer.h"
#include "refimpl/tokenizers/subword_model.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// What goes around a text: ids, and nothing where the text itself goes.
using SpecialFrame = std::vector<std::optional<TokenId>>;

struct PipelineParts {
  Vocabulary vocabulary;
  SpecialTokens special;
  std::vector<AddedToken> added;
  std::unique_ptr<TextNormalizer> normalizer;   // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<SubwordModel> model;
  SpecialFrame frame = {std::nullopt};
  DecoderPlan decoder;
};

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts);

// BOS and EOS around the text, where wanted and known.
SpecialFrame bos_eos_frame(const SpecialTokens& special, bool add_bos, bool add_eos);

}  // namespace assay
