#include "refimpl/serve/text_part.h"

#include <algorithm>

namespace assay {
namespace {

std::string pushed(std::optional<TokenStream>& stream, TokenId id) {
  return stream ? stream->push(id) : "";
}

}  // namespace

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void TextPart::add(TextPart more) {
  text += more.text;
  ids.insert(ids.end(), more.ids.begin(), more.ids.end());
  std::move(more.tokens.begin(), more.tokens.end(), std::back_inserter(tokens));
  if (more.reason) reason = more.reason;
}

TextWriter::TextWriter(const Tokenizer* tokenizer, const TextRequest& request,
                       const std::vector<TokenId>& prompt, const std::string& echo)
    : stop_(request.stops, request.keep_stop),
      echo_(echo),
      offset_(characters(echo)),
      scores_prompt_(request.echo && request.log_probabilities.has_value()) {
  if (tokenizer != nullptr) {
    stream_.emplace(*tokenizer);
    prompt_stream_.emplace(*tokenizer);
  }
  if (scores_prompt_ && !prompt.empty()) first_of_prompt_ = {prompt.front()};
}

TextPart TextWriter::begin() {
  begun_ = true;
  TextPart part{.text = echo_};
  for (const TokenId id : first_of_prompt_) {
    part.tokens.push_back({.id = id, .offset = prompt_offset_});
    prompt_offset_ += characters(pushed(prompt_stream_, id));
  }
  return part;
}

TextPart TextWriter::token(const TextEvent& event) {
  TextPart part;
  const bool of_prompt = event.kind == TextEvent::Kind::prompt_token;
  std::size_t& offset = of_prompt ? prompt_offset_ : offset_;
  if (event.likely) part.tokens.push_back({event.id, event.likely, offset});
  const std::string text = pushed(of_prompt ? prompt_stream_ : stream_, event.id);
  offset += characters(text);
  if (of_prompt) return part;
  ++made_;
  part.ids.push_back(event.id);
  part.text = stop_.push(text);
  return part;
}

TextPart TextWriter::push(const TextEvent& event) {
  TextPart part = begun_ ? TextPart() : begin();
  if (event.kind != TextEvent::Kind::end) {
    part.add(token(event));
    return part;
  }
  part.text += stop_.push(stream_ ? stream_->finish() : "");
  part.text += stop_.finish();
  part.reason = event.reason;
  over_ = true;
  return part;
}

}  // namespace assay
