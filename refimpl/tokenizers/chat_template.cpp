#include "refimpl/tokenizers/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

// As Python's str.strip() has it: White_Space, and the four separators of ASCII.
bool is_stripped(char32_t c) {
  return unicode::is_whitespace(c) || (c >= 0x1C && c <= 0x1F);
}

std::string_view strip(std::string_view text) {
  std::size_t at = 0, first = text.size(), end = text.size();
  unicode::for_each_character(text, [&](const unicode::Character& c, std::string_view bytes) {
    if (!c.valid || !is_stripped(c.code)) {
      first = std::min(first, at);
      end = at + bytes.size();
    }
    at += bytes.size();
  });
  return first == text.size() ? std::string_view() : text.substr(first, end - first);
}

class Prompt {
 public:
  Prompt(const ChatStyle& style, const std::vector<ChatMessage>& messages, const Tokenizer& tokenizer)
      : style_(style),
        messages_(messages),
        bos_(tokenizer.bos() ? tokenizer.piece(*tokenizer.bos()) : ""),
        eos_(tokenizer.eos() ? tokenizer.piece(*tokenizer.eos()) : "") {}

  std::string render() {
    check_order();
    const bool has_system = messages_.front().role == "system";
    if (has_system)
      system_ = style_.trims_system ? strip(messages_.front().content) : messages_.front().content;
    frame(style_.begin);
    if (!has_system)
      frame(style_.preset_system);
    else if (style_.place == SystemPlace::turn)
      message(style_.system, system_);
    else if (style_.place == SystemPlace::refused)
      refuse("the model's template takes no system message");
    const std::size_t first = has_system ? 1 : 0;
    for (std::size_t i = first; i < messages_.size(); ++i) {
      if (messages_[i].role == "assistant")
        assistant(messages_[i].content);
      else
        user(messages_[i].content, has_system && carries_system(i == first, i + 1 == messages_.size()));
    }
    frame(style_.generation);
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error::input(fmt::format("chat format {}: {}", style_.name, what));
  }

  void check_order() const {
    if (messages_.empty()) refuse("no message");
    const std::size_t first = messages_.front().role == "system" ? 1 : 0;
    for (std::size_t i = first; i < messages_.size(); ++i) {
      const std::string_view expected = (i - first) % 2 == 0 ? "user" : "assistant";
      if (messages_[i].role != expected)
        refuse(fmt::format("message {} is of role '{}' where it is the {}'s turn", i + 1,
                           escape_for_terminal(messages_[i].role), expected));
    }
    if (messages_.back().role != "user") refuse("the last message is not the user's");
    if (first == 1 && strip(messages_.front().content).empty())
      refuse("an empty system message, which some templates write and some do not");
  }

  bool carries_system(bool is_first, bool is_last) const {
    return (is_first && style_.place == SystemPlace::in_first_user) ||
           (is_last && style_.place == SystemPlace::in_last_user);
  }

  void user(std::string_view content, bool with_system) {
    // Qwen 3's template looks for the last user's message that is no tool's answer.
    if (style_.thoughts == Thoughts::cut_with_newlines && content.starts_with("<tool_response>"))
      refuse("a user's message that looks like a tool's answer");
    if (style_.trims_user == Trim::alone) content = strip(content);
    if (!with_system)
      return message(style_.user, style_.trims_user == Trim::with_system ? strip(content) : content);
    const std::string text =
        fmt::format("{}{}{}{}", style_.system.open, system_, style_.system.close, content);
    message(style_.user, style_.trims_user == Trim::with_system ? strip(text) : text);
  }

  void assistant(std::string_view content) {
    constexpr std::string_view kEnd = "</think>";
    const std::size_t end = content.rfind(kEnd);
    if (style_.thoughts != Thoughts::kept && end != std::string_view::npos) {
      content.remove_prefix(end + kEnd.size());
      while (style_.thoughts == Thoughts::cut_with_newlines && content.starts_with('\n'))
        content.remove_prefix(1);
    }
    message(style_.assistant, style_.trims_assistant ? strip(content) : content);
  }

  void message(const Around& around, std::string_view content) {
    frame(around.open);
    out_ += content;
    frame(around.close);
  }

  // A text of the style's own, with the tokenizer's pieces put in.
  void frame(std::string_view text) {
    while (!text.empty()) {
      const std::size_t at = text.find('{');
      out_ += text.substr(0, at);
      if (at == std::string_view::npos) return;
      text.remove_prefix(at);
      const bool bos = text.starts_with("{bos}"), eos = text.starts_with("{eos}");
      out_ += bos ? bos_ : eos ? eos_ : "{";
      text.remove_prefix(bos || eos ? 5 : 1);
    }
  }

  const ChatStyle& style_;
  const std::vector<ChatMessage>& messages_;
  std::string system_, bos_, eos_, out_;
};

}  // namespace

const ChatStyle& recognize_chat_style(const Tokenizer& tokenizer) {
  const std::string& source = tokenizer.chat_template();
  if (source.empty())
    throw Error::input("the model brings no chat template")
        .remedy("write the prompt out as the model wants it, without --chat");
  if (const ChatStyle* style = chat_style_of(source)) return *style;
  throw Error::input(fmt::format("the model's chat template ({}) is none of those known to the letter",
                                 template_fingerprint(source)))
      .remedy("write the prompt out as the model wants it, without --chat");
}

std::string render_chat(const ChatStyle& style, const std::vector<ChatMessage>& messages,
                        const Tokenizer& tokenizer) {
  return Prompt(style, messages, tokenizer).render();
}

}  // namespace assay
