// Answers as OpenAI's API writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/system/json.h"
#include "refimpl/serve/text_part.h"
#include "refimpl/serve/token_names.h"

namespace assay {

enum class AnswerKind : std::uint8_t { completion, chat };

// What all chunks of an answer have in common.
struct AnswerHead {
  AnswerKind kind = AnswerKind::completion;
  std::string id, model, fingerprint;
  std::int64_t created = 0;  // seconds since 1970
};

struct Usage {
  std::size_t prompt_tokens = 0, completion_tokens = 0;
};
Json to_json(const Usage& usage);

class AnswerWriter {
 public:
  AnswerWriter(AnswerHead head, const TokenNames& names, const TextRequest& request)
      : head_(std::move(head)), names_(names), as_ids_(request.names_as_ids), ids_(request.ids) {}

  // Of an answer that is whole.
  Json document(const Json& choices, const Usage& usage) const;
  Json choice(std::size_t index, const TextPart& part, const std::vector<TokenId>& prompt) const;
  // Of one that comes in chunks. `first`: of this choice.
  Json chunk(const Json& choices) const;
  Json chunk_choice(std::size_t index, const TextPart& part, bool first) const;

 private:
  Json head(bool chunk) const;
  Json log_probabilities(const TextPart& part) const;
  Json chat_log_probabilities(const TextPart& part) const;
  Json named(TokenId id, double log_probability) const;

  AnswerHead head_;
  const TokenNames& names_;
  bool as_ids_, ids_;
};

// {"error": {"message", "type", "param", "code"}}
Json error_json(std::string_view message, std::string_view type, std::string_view param,
                std::string_view code);

}  // namespace assay
