#include "refimpl/bench_url/answer_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

// Names that are no texts: of bytes which are no whole character (vLLM's are empty), and of ids.
bool is_text(std::string_view piece) {
  return !piece.empty() && !piece.starts_with("bytes:") && !piece.starts_with("token_id:") &&
         piece.find("\xEF\xBF\xBD") == std::string_view::npos && piece.find("\\x") == std::string_view::npos;
}

std::string_view trim_front(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// "<|im_end|>", "[INST]".
bool names_special_token(std::string_view piece) {
  return piece.size() > 2 &&
         ((piece.front() == '<' && piece.back() == '>') || (piece.front() == '[' && piece.back() == ']'));
}

}  // namespace

bool AnswerStream::fail(std::string_view why) {
  failed_ = true;
  record_.error = why;
  return false;
}

bool AnswerStream::push(std::string_view bytes, double at) {
  if (failed_) return false;
  try {
    for (const std::string& event : events_.push(bytes)) {
      const StreamChunk chunk = parse_stream_chunk(event);
      if (done_) return fail("something follows [DONE]");
      if (!chunk.error.empty()) return fail("the server: " + error_message_of(event));
      take(chunk, at);
    }
  } catch (const Error& error) {
    return fail(error.line());
  }
  return true;
}

void AnswerStream::take(const StreamChunk& chunk, double at) {
  done_ = chunk.done;
  if (chunk.usage) record_.usage = chunk.usage;
  if (!chunk.finish_reason.empty()) record_.finish_reason = chunk.finish_reason;
  if (chunk.has_choice) count(chunk, at);
}

// vllm#15106: a chunk that only names the role is not the first token. One without text may bear tokens all the same: those
// whose characters are not whole yet.
void AnswerStream::count(const StreamChunk& chunk, double at) {
  std::optional<std::size_t> tokens = chunk.tokens;
  if (!std::exchange(any_choice_, true)) usage_counts_on_ = chunk.usage.has_value();
  if (chunk.usage && usage_counts_on_) {
    const std::size_t told = std::max(told_before_, chunk.usage->completion_tokens);
    if (!tokens) tokens = told - told_before_;
    told_before_ = told;
  }
  constexpr std::size_t kMostTokens = 1 << 20;  // of one chunk: each is given a gap
  if (tokens.value_or(0) > kMostTokens)
    throw Error::input(fmt::format("a chunk is said to bear {} tokens", *tokens));
  text_ += chunk.text;
  for (const std::string& piece : chunk.pieces) {
    pieces_.push_back(piece);
    pieces_are_text_ = pieces_are_text_ && is_text(piece);
  }
  const bool bears = tokens ? *tokens > 0 : !chunk.text.empty();
  if (bears) record_.chunks.push_back({at, tokens});
}

// sglang#39260, #30188: logprobs of other tokens than those that came. What a stop string or the name of an end cuts off the
// text stays in its tokens, and so do names of special tokens, which a text leaves out where it stands; a blank at the beginning may be
// cut off, too.
bool AnswerStream::pieces_differ() const {
  if (pieces_.empty() || !pieces_are_text_) return false;
  std::string_view left = trim(text_);
  bool begun = false;
  for (const std::string& piece : pieces_) {
    const std::string_view part = begun ? std::string_view(piece) : trim_front(piece);
    if (left.empty()) return false;
    if (left.starts_with(part)) {
      left.remove_prefix(part.size());
      begun = begun || !part.empty();
    } else if (!names_special_token(piece)) {
      return !part.starts_with(left);
    }
  }
  return !left.empty();
}

void AnswerStream::finish(std::string_view failure, double at) {
  record_.ended = at;
  if (!failed_ && !failure.empty() && !done_) fail(failure);
  const bool over = done_ || (!record_.finish_reason.empty() && !events_.amid_event());
  if (!failed_ && !over)
    fail(record_.chunks.empty() ? "the answer is no stream of events, or an empty one"
                                : "the stream ended before its answer did");
  record_.pieces_differ = !failed_ && pieces_differ();
  record_.end = failed_ ? RequestEnd::failed : RequestEnd::whole;
}

}  // namespace assay
