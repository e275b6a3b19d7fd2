#include "refimpl/serve/text_answer.h"

#include <utility>

namespace assay {
namespace {

std::string event(const Json& document) {
  return "data: " + dump_json(document, -1) + "\n\n";
}

}  // namespace

TextAnswer::TextAnswer(TextService& service, TextRequest request, std::vector<TextService::Prompt> prompts,
                       AnswerHead head)
    : service_(service),
      request_(std::move(request)),
      prompts_(std::move(prompts)),
      orders_(service.orders_of(request_, prompts_)),
      writer_(std::move(head), service.names(), request_) {
  for (std::size_t p = 0; p < prompts_.size(); ++p) {
    const std::string echo = request_.echo ? prompts_[p].text : "";
    for (std::size_t sample = 0; sample < request_.samples; ++sample)
      choices_.push_back(
          {.writer = TextWriter(service.tokenizer(), request_, prompts_[p].tokens, echo), .prompt = p});
  }
  open_ = choices_.size();
}

bool TextAnswer::ask() {
  asked_ = service_.engine().ask(std::exchange(orders_, {}));
  return asked_ != nullptr;
}

bool TextAnswer::take(std::chrono::milliseconds patience) {
  const std::optional<TextEvent> event = asked_->next(patience);
  if (!event) {
    if (service_.engine().broken()) throw Error::internal("the engine has ended");
    return false;
  }
  if (event->kind == TextEvent::Kind::failure) throw Error(*event->failure);
  if (event->kind == TextEvent::Kind::end && event->reason == FinishReason::interrupted)
    throw Error::io("the server is ending");
  const std::size_t first = event->order * request_.samples;
  if (event->kind == TextEvent::Kind::prompt_token) {  // every sample has the prompt
    for (std::size_t i = first; i < first + request_.samples; ++i)
      choices_[i].part.add(choices_[i].writer.push(*event));
    return true;
  }
  Choice& choice = choices_[first + event->sample];
  choice.part.add(choice.writer.push(*event));
  if (choice.writer.over()) --open_;
  return true;
}

Usage TextAnswer::usage() const {
  Usage usage;
  for (const TextService::Prompt& prompt : prompts_) usage.prompt_tokens += prompt.tokens.size();
  for (const Choice& choice : choices_) usage.completion_tokens += choice.writer.made();
  return usage;
}

std::string TextAnswer::whole() const {
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i)
    choices.push_back(writer_.choice(i, choices_[i].part, prompts_[choices_[i].prompt].tokens));
  return dump_json(writer_.document(choices, usage()), -1);
}

std::string TextAnswer::events() {
  std::string text;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (!choice.part.worth_sending()) continue;
    const TextPart part = std::exchange(choice.part, {});
    Json chunk = writer_.chunk(Json::array({writer_.chunk_choice(i, part, !choice.sent_any)}));
    if (request_.stream_usage) chunk["usage"] = nullptr;
    choice.sent_any = true;
    text += event(chunk);
  }
  if (!over() || std::exchange(told_end_, true)) return text;
  if (request_.stream_usage) {
    Json chunk = writer_.chunk(Json::array());
    chunk["usage"] = to_json(usage());
    text += event(chunk);
  }
  return text + "data: [DONE]\n\n";
}

std::string TextAnswer::failed_event(std::string_view message, std::string_view type) {
  return event(error_json(message, type, "", ""));
}

}  // namespace assay
