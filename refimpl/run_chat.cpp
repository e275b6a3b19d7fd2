#include "refimpl/run_chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "core/system/message.h"
#include "core/system/threads.h"
#include "refimpl/chat_options.h"
#include "refimpl/engine/engine.h"
#include "refimpl/models/placeholder_tokens.h"
#include "refimpl/run_sampling.h"

namespace assay {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

// nullopt, and a word about it: lines are then given as they are.
std::optional<Chat> chat_of(const Tokenizer& tokenizer, const ChatOptions& options) {
  if (tokenizer.chat_templates().empty() && options.chat_template.empty()) {
    write_message("note: the model brings no chat template: lines are given to the model as they are");
    return std::nullopt;
  }
  return std::optional<Chat>(std::in_place, tokenizer, options);
}

// A line of standard input without its end; nullopt at the end of input, or when interrupted.
std::optional<std::string> read_line() {
  std::string line;
  for (char c = 0; line.size() < kLongestLine;) {
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && !interrupted()) continue;
    if (got <= 0) return line.empty() ? std::nullopt : std::optional(line);
    if (c == '\n') return line;
    line += c;
  }
  return line;
}

}  // namespace

int chat(OpenModel& model, const RunSettings& settings) {
  const Tokenizer& tokenizer = model.tokenizer();
  const std::optional<Chat> template_chat = chat_of(tokenizer, settings.chat);
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  jinja::Values turns;
  TextEngine engine(*model.model, *model.ops);
  const RequestRules rules(model, settings);
  std::uint64_t turn = 0;
  while (!interrupted()) {
    if (terminal) write_unfinished("> ");
    const auto line = read_line();
    if (!line) break;
    turns.push_back(chat_message("user", template_chat ? *line : ""));
    GenerationRequest request = {.max_new_tokens = settings.tokens_to_make()};
    rules.apply(request);
    request.sampling.seed += turn++;
    request.prompt = template_chat ? tokenizer.encode(template_chat->prompt_of(turns), {.add_special = false})
                                   : tokenizer.encode(*line);
    require_text(request.prompt, model.weights.config());
    ShownText stream(tokenizer, settings.stop);
    std::string answer;
    const auto show = [&](const std::string& text) {
      answer += text;
      stream_output(text);
    };
    engine.generate({request},
                    [&](std::size_t, TokenId id, std::span<const double>) { show(stream.push(id)); });
    show(stream.finish());
    stream_output("\n");
    turns.push_back(chat_message("assistant", answer));
  }
  return interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace assay
