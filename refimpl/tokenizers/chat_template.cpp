// Formats as the models' chat_template (tokenizer_config.json, chat_template.jinja) writes them. Where a
// family's versions differ in a literal, the literal is taken from the template itself.
#include "refimpl/tokenizers/chat_template.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <utility>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The string literal of the template's source that contains `part`, with \n as a newline.
std::string literal_with(std::string_view source, std::string_view part, std::string_view otherwise) {
  const std::size_t at = source.find(part);
  if (at == std::string_view::npos) return std::string(otherwise);
  const std::size_t open = source.find_last_of("'\"", at);
  const std::size_t close = open == std::string_view::npos ? open : source.find(source[open], at);
  if (close == std::string_view::npos) return std::string(otherwise);
  std::string literal;
  for (std::size_t i = open + 1; i < close; ++i) {
    const bool newline = source.substr(i).starts_with("\\n");
    literal += newline ? '\n' : source[i];
    if (newline) ++i;
  }
  return literal;
}

struct Mark {
  std::string_view text;
  ChatFormat format;
};
// The first that the template holds decides.
constexpr std::array<Mark, 14> kTemplateMarks = {{{"<|start|>", ChatFormat::harmony},
                                                  {"<｜User｜>", ChatFormat::deepseek_v3},
                                                  {"Cutting Knowledge Date", ChatFormat::llama31},
                                                  {"<|start_header_id|>", ChatFormat::llama3},
                                                  {"<start_of_turn>", ChatFormat::gemma},
                                                  {"<|im_start|>system\\nYou are", ChatFormat::qwen25},
                                                  {"<|im_start|>", ChatFormat::chatml},
                                                  {"<<SYS>>", ChatFormat::llama2},
                                                  {"[INST]", ChatFormat::mistral},
                                                  {"<|end|>", ChatFormat::phi3},
                                                  {"<|user|>", ChatFormat::zephyr},
                                                  {"User: ", ChatFormat::deepseek_v2},
                                                  {"<|im_sep|>", ChatFormat::chatml},
                                                  {"message['role'] + '\\n'", ChatFormat::zephyr}}};
// Without a template, the vocabulary's control pieces tell.
constexpr std::array<Mark, 6> kVocabularyMarks = {{{"<|start|>", ChatFormat::harmony},
                                                   {"<｜User｜>", ChatFormat::deepseek_v3},
                                                   {"<|start_header_id|>", ChatFormat::llama3},
                                                   {"<start_of_turn>", ChatFormat::gemma},
                                                   {"<|im_start|>", ChatFormat::chatml},
                                                   {"[INST]", ChatFormat::mistral}}};

class Prompt {
 public:
  Prompt(ChatFormat format, const std::vector<ChatMessage>& messages, const Tokenizer& tokenizer)
      : format_(format),
        messages_(messages),
        source_(tokenizer.chat_template()),
        bos_(tokenizer.bos() ? tokenizer.piece(*tokenizer.bos()) : ""),
        eos_(tokenizer.eos() ? tokenizer.piece(*tokenizer.eos()) : "") {}

  std::string render() {
    check_roles();
    switch (format_) {
      case ChatFormat::chatml:
      case ChatFormat::qwen25: chatml(); break;
      case ChatFormat::llama2: llama2(); break;
      case ChatFormat::llama3:
      case ChatFormat::llama31: llama3(); break;
      case ChatFormat::mistral: mistral(); break;
      case ChatFormat::gemma: gemma(); break;
      case ChatFormat::phi3: phi3(); break;
      case ChatFormat::deepseek_v2: deepseek_v2(); break;
      case ChatFormat::deepseek_v3: deepseek_v3(); break;
      case ChatFormat::zephyr: zephyr(); break;
      case ChatFormat::harmony: harmony(); break;
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error::input(fmt::format("chat format {}: {}", name(format_), what));
  }

  void check_roles() const {
    if (messages_.empty()) refuse("no message");
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const std::string& role = messages_[i].role;
      if (role != "system" && role != "user" && role != "assistant")
        refuse(fmt::format("role '{}' is none of system, user, assistant", escape_for_terminal(role)));
      if (role == "system" && i > 0) refuse("only the first message may be the system's");
    }
  }

  std::string_view system() const {
    return messages_[0].role == "system" ? std::string_view(messages_[0].content) : std::string_view();
  }
  // Calls visit(message, first) for all but the system's.
  template <class Visit>
  void turns(Visit visit) const {
    bool first = true;
    for (const ChatMessage& message : messages_) {
      if (message.role != "system") visit(message, std::exchange(first, false));
    }
  }
  template <class... Parts>
  void add(const Parts&... parts) {
    ((out_ += parts), ...);
  }

  // Reasoning models are not shown what they thought in earlier turns.
  std::string_view without_thoughts(std::string_view content) const {
    const std::size_t end = content.rfind("</think>");
    if (end == std::string_view::npos || !holds(source_, "</think>")) return content;
    content.remove_prefix(end + std::string_view("</think>").size());
    return content;
  }

  void chatml() {
    if (format_ == ChatFormat::qwen25 && messages_[0].role != "system") {
      std::string preset = literal_with(source_, "<|im_start|>system\\nYou are", "");
      preset.resize(std::min(preset.find("<|im_end|>"), preset.size()));
      add(preset, "<|im_end|>\n");
    }
    for (const ChatMessage& message : messages_) {
      std::string_view content = message.content;
      if (message.role == "assistant" && content.size() != without_thoughts(content).size()) {
        content = without_thoughts(content);
        while (content.starts_with('\n')) content.remove_prefix(1);
      }
      add("<|im_start|>", message.role, "\n", content, "<|im_end|>\n");
    }
    add("<|im_start|>assistant\n");
  }

  void llama2() {
    turns([&](const ChatMessage& message, bool first) {
      std::string content = message.content;
      if (first && !system().empty()) content = fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n{}", system(), content);
      if (message.role == "user")
        add(bos_, "[INST] ", trim(content), " [/INST]");
      else
        add(" ", trim(content), " ", eos_);
    });
  }

  void llama3() {
    const auto header = [&](std::string_view role) {
      add("<|start_header_id|>", role, "<|end_header_id|>\n\n");
    };
    add(bos_);
    const bool dated = format_ == ChatFormat::llama31;
    if (dated || !system().empty()) {
      header("system");
      // The date is the template's own, not today's, so that a prompt is the same tomorrow.
      if (dated) add("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
      add(trim(system()), "<|eot_id|>");
    }
    turns([&](const ChatMessage& message, bool) {
      header(message.role);
      add(trim(message.content), "<|eot_id|>");
    });
    header("assistant");
  }

  void mistral() {
    const std::string open = literal_with(source_, "[INST]", "[INST] ");
    const std::string close = literal_with(source_, "[/INST]", " [/INST]");
    const bool spaced = holds(source_, "\" \" + message") || holds(source_, "' ' + message");
    const bool late_system = holds(source_, "loop.last and system_message");
    add(bos_);
    std::size_t last = 0, index = 0;
    turns([&](const ChatMessage& message, bool) { last = message.role == "user" ? index : last, ++index; });
    index = 0;
    turns([&](const ChatMessage& message, bool) {
      const bool carries_system = !system().empty() && index == (late_system ? last : 0);
      ++index;
      if (message.role == "assistant") return add(spaced ? " " : "", message.content, eos_);
      add(open);
      if (carries_system) add(system(), "\n\n");
      add(message.content, close);
    });
  }

  void gemma() {
    add(bos_);
    turns([&](const ChatMessage& message, bool first) {
      if (first && !system().empty() && holds(source_, "System role not supported"))
        refuse("this model takes no system message");
      add("<start_of_turn>", message.role == "assistant" ? "model" : "user", "\n");
      if (first && !system().empty()) add(system(), "\n\n");
      add(trim(message.content), "<end_of_turn>\n");
    });
    add("<start_of_turn>model\n");
  }

  void phi3() {
    const std::string_view line = holds(source_, "<|end|>\\n") || holds(source_, "'\\n'") ? "\n" : "";
    if (holds(source_, "bos_token")) add(bos_);
    for (const ChatMessage& message : messages_)
      add("<|", message.role, "|>", line, message.content, "<|end|>", line);
    add("<|assistant|>", line);
  }

  void deepseek_v2() {
    add(bos_);
    for (const ChatMessage& message : messages_) {
      if (message.role == "system") add(message.content, "\n\n");
      if (message.role == "user") add("User: ", message.content, "\n\n");
      if (message.role == "assistant") add("Assistant: ", message.content, eos_);
    }
    add("Assistant:");
  }

  void deepseek_v3() {
    add(bos_, system());
    turns([&](const ChatMessage& message, bool) {
      if (message.role == "user")
        add("<｜User｜>", message.content);
      else
        add("<｜Assistant｜>", without_thoughts(message.content), "<｜end▁of▁sentence｜>");
    });
    add("<｜Assistant｜>");
    if (holds(source_, "<｜Assistant｜><think>\\n")) add("<think>\n");
    if (holds(source_, "if not thinking")) add("</think>");
  }

  void zephyr() {
    for (const ChatMessage& message : messages_) add("<|", message.role, "|>\n", message.content, eos_, "\n");
    add("<|assistant|>\n");
  }

  // The least that gpt-oss's harmony format allows: medium effort, no tools, today's date as it wants it.
  void harmony() {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    add("<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: ",
        fmt::format("{:%Y-%m-%d}", fmt::gmtime(now)),
        "\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "
        "Channel must be included for every message.<|end|>");
    if (!system().empty()) add("<|start|>developer<|message|># Instructions\n\n", system(), "\n\n<|end|>");
    turns([&](const ChatMessage& message, bool) {
      if (message.role == "user")
        add("<|start|>user<|message|>", message.content, "<|end|>");
      else
        add("<|start|>assistant<|channel|>final<|message|>", message.content, "<|end|>");
    });
    add("<|start|>assistant");
  }

  ChatFormat format_;
  const std::vector<ChatMessage>& messages_;
  std::string_view source_;
  std::string bos_, eos_, out_;
};

}  // namespace

std::string_view name(ChatFormat format) {
  static constexpr std::array<std::string_view, 11> kNames = {"ChatML",      "ChatML with a system message",
                                                              "Llama 2",     "Llama 3",
                                                              "Llama 3.1",   "Mistral",
                                                              "Gemma",       "Phi-3",
                                                              "DeepSeek V2", "DeepSeek V3",
                                                              "Zephyr"};
  const auto at = static_cast<std::size_t>(format);
  return at < kNames.size() ? kNames[at] : "harmony";
}

ChatFormat recognize_chat_format(const Tokenizer& tokenizer) {
  const std::string& source = tokenizer.chat_template();
  for (const Mark& mark : kTemplateMarks) {
    if (holds(source, mark.text)) return mark.format;
  }
  for (const Mark& mark : kVocabularyMarks) {
    const auto id = tokenizer.vocabulary().find(mark.text);
    if (source.empty() && id && tokenizer.vocabulary().kind(*id) == PieceKind::control) return mark.format;
  }
  throw Error::input(source.empty() ? "the model brings no chat template"
                                    : "the model's chat template is of no family we know")
      .remedy("write the prompt out as the model wants it, without --chat");
}

std::string render_chat(ChatFormat format, const std::vector<ChatMessage>& messages,
                        const Tokenizer& tokenizer) {
  return Prompt(format, messages, tokenizer).render();
}

}  // namespace assay
