// One text of an answer, as its tokens come: parts that are sent at once, or added up until it is whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refimpl/sampling/stop_text.h"
#include "refimpl/serve/engine_thread.h"
#include "refimpl/serve/text_request.h"
#include "refimpl/tokenizers/token_stream.h"

namespace assay {

struct ScoredToken {
  TokenId id = 0;
  std::shared_ptr<const LikelyTokens> likely;  // none: the first of a prompt, which nothing was said of
  std::size_t offset = 0;                      // in the text, in characters
};

struct TextPart {
  std::string text;                 // whole characters
  std::vector<TokenId> ids;         // made
  std::vector<ScoredToken> tokens;  // where ln p is asked for
  std::optional<FinishReason> reason;

  void add(TextPart more);
  // Is there anything to tell before the end?
  bool worth_sending() const { return !text.empty() || !tokens.empty() || reason.has_value(); }
};

class TextWriter {
 public:
  // Without a tokenizer texts are empty, and of ids alone. `echo`: what stands before the text that is made; empty: nothing.
  TextWriter(const Tokenizer* tokenizer, const TextRequest& request, const std::vector<TokenId>& prompt,
             const std::string& echo);
  TextPart push(const TextEvent& event);  // of its own text
  bool over() const { return over_; }
  std::size_t made() const { return made_; }

 private:
  TextPart begin();
  TextPart token(const TextEvent& event);

  std::optional<TokenStream> stream_;
  std::optional<TokenStream> prompt_stream_;  // for the offsets of a prompt's tokens
  StopText stop_;
  std::string echo_;
  std::vector<TokenId> first_of_prompt_;  // at most one: scored without ln p
  std::size_t prompt_offset_ = 0, offset_ = 0, made_ = 0;
  bool scores_prompt_, begun_ = false, over_ = false;
};

// Characters of a text that is UTF-8.
std::size_t characters(std::string_view utf8);

}  // namespace assay
