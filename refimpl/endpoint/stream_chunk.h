// One event of an answer that is streamed, as servers of OpenAI's API write it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct UsageTold {
  std::size_t prompt_tokens = 0, completion_tokens = 0;
};

struct StreamChunk {
  bool done = false;  // "[DONE]"
  std::string error;  // what the server says went wrong
  bool has_choice = false;
  std::string text;                   // of the answer, thoughts and calls of tools
  std::optional<std::size_t> tokens;  // as its token_ids or logprobs tell
  std::vector<std::string> pieces;    // the tokens' texts, where logprobs name them
  std::string finish_reason;
  std::optional<UsageTold> usage;
};

// Throws Error::input.
StreamChunk parse_stream_chunk(std::string_view data);
// The same of an answer that came in one piece.
std::optional<UsageTold> usage_of_answer(std::string_view body);

// {"error": {"message"}}, {"error": "…"}, {"message": …} or the body's beginning, on one line.
std::string error_message_of(std::string_view body);

}  // namespace assay
