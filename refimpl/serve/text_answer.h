// The answer to one request, whole or in parts, as server-sent events.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/serve/answer_json.h"
#include "refimpl/serve/text_part.h"
#include "refimpl/serve/text_service.h"

namespace assay {

class TextAnswer {
 public:
  // Throws Error::input naming the field.
  TextAnswer(TextService& service, TextRequest request, std::vector<TextService::Prompt> prompts,
             AnswerHead head);

  bool ask();  // false: the engine has too much to do
  // What has come by now, waiting so long for something; false: nothing has. Throws the engine's Error, and Error::io
  // where the engine ended before the text did.
  bool take(std::chrono::milliseconds patience);
  bool over() const { return open_ == 0; }

  std::string whole() const;  // of an answer that is over
  // The events of what was taken since the last call, and of the end.
  std::string events();
  // What is told in a stream in place of more.
  static std::string failed_event(std::string_view message, std::string_view type);

  Usage usage() const;

 private:
  struct Choice {
    TextWriter writer;
    TextPart part = {};  // all of it, or what was not sent yet
    std::size_t prompt = 0;
    bool sent_any = false;
  };

  TextService& service_;
  TextRequest request_;
  std::vector<TextService::Prompt> prompts_;
  std::vector<TextOrder> orders_;
  AnswerWriter writer_;
  std::vector<Choice> choices_;  // of each prompt its samples
  std::size_t open_ = 0;
  bool told_end_ = false;
  std::unique_ptr<AskedTexts> asked_;
};

}  // namespace assay
