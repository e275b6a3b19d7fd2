#include "refimpl/run_tokenize.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "refimpl/chat_options.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

struct Settings {
  std::string model, file, pattern;
  std::optional<std::string> text;
  bool decode = false, no_special = false, literal = false;
  ChatOptions chat;
  CommonOptions common;
};

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error::from_errno("read standard input", errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMostTextBytes) throw Error::input("standard input is longer than a text may be");
  }
}

std::string input_text(const Settings& settings) {
  if (settings.text && !settings.file.empty()) throw Error::usage("both TEXT and --file are given");
  if (settings.text) return *settings.text;
  if (settings.file.empty())
    throw Error::usage("no TEXT").remedy("give it as an argument, or with --file FILE|-");
  return settings.file == "-" ? read_standard_input() : read_small_file(settings.file, kMostTextBytes);
}

// "1 2,3 [4]" as people paste ids.
std::vector<TokenId> parse_ids(std::string_view text) {
  static constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<TokenId> ids;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const auto id = parse_u64(word);
    if (!id || *id > ~TokenId{0}) {
      throw Error::usage(fmt::format("'{}' is no token id", escape_for_terminal(word.substr(0, 40))))
          .remedy("write ids as 1,2,3");
    }
    ids.push_back(static_cast<TokenId>(*id));
    at = end;
  }
  return ids;
}

Json json_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::string_view text) {
  Json pieces = Json::array();
  for (const TokenId id : ids) pieces.push_back(tokenizer.piece(id));
  return {{"schema", "assay.tokenize/1"},         {"tokenizer", tokenizer.description()},
          {"vocabulary", tokenizer.vocab_size()}, {"ids", ids},
          {"pieces", std::move(pieces)},          {"text", unicode::with_replacements(text)}};
}

// On a terminal, what would move the cursor about is shown instead.
std::string for_people(const std::string& text) {
  if (::isatty(STDOUT_FILENO) == 0) return text;
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    shown += escape_for_terminal(std::string_view(text).substr(at, end - at));
    if (end < text.size()) shown += text[end];
    at = end + 1;
  }
  return shown;
}

int decode(const Settings& settings, const Tokenizer& tokenizer) {
  const std::vector<TokenId> ids = parse_ids(input_text(settings));
  const std::string text = tokenizer.decode(ids, settings.no_special);
  const Output output(settings.common.json);
  output.line(for_people(text));
  if (output.json_wanted()) output.json(json_of(tokenizer, ids, text));
  return kExitOk;
}

int encode(const Settings& settings, const Tokenizer& tokenizer) {
  const bool has_text = settings.text || !settings.file.empty();
  std::string text = has_text || settings.chat.messages.empty() ? input_text(settings) : "";
  EncodeOptions options{!settings.no_special, !settings.literal};
  if (settings.chat.wanted()) {
    const Chat chat(tokenizer, settings.chat);
    text = chat.prompt(has_text ? std::optional<std::string_view>(text) : std::nullopt);
    options = {false, true};  // the template has put them where they belong
  }
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  const Output output(settings.common.json);
  if (output.text_wanted()) {
    output.line(fmt::format("{} ({} pieces)", escape_for_terminal(tokenizer.description()),
                            with_thousands(tokenizer.vocab_size())));
    for (const TokenId id : ids)
      output.line(fmt::format("{:>8}  {}", id, escape_for_terminal(tokenizer.piece(id))));
    output.line(
        fmt::format("{} tokens of {} bytes", with_thousands(ids.size()), with_thousands(text.size())));
  }
  if (output.json_wanted()) output.json(json_of(tokenizer, ids, text));
  return kExitOk;
}

int run(const Settings& settings) {
  check_chat_options(settings.chat);
  if (settings.decode && settings.chat.wanted()) throw Error::usage("--decode and --chat exclude each other");
  const auto tokenizer = load_tokenizer(settings.model, settings.pattern);
  return settings.decode ? decode(settings, *tokenizer) : encode(settings, *tokenizer);
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  auto settings = std::make_shared<Settings>();
  CLI::App& command =
      *program.add_subcommand("tokenize", "Token ids and pieces of a text, or the text of ids");
  command
      .add_option(
          "model", settings->model,
          "A model's folder, tokenizer.json, tokenizer.model, vocab.json, a tiktoken rank file, a GGUF")
      ->required()
      ->type_name("MODEL");
  command.add_option("text", settings->text, "What to tokenize; with --decode: ids")->type_name("TEXT");
  command.add_option("--file", settings->file, "Read TEXT from FILE, or from stdin with '-'")
      ->type_name("FILE|-");
  command.add_flag("--decode", settings->decode, "TEXT is ids: print what they say");
  command.add_flag("--no-special", settings->no_special,
                   "Add no BOS, EOS, CLS …; with --decode: leave special tokens out");
  command.add_flag("--literal", settings->literal, "Special tokens written in TEXT are text, not tokens");
  add_chat_options(command, settings->chat,
                   "TEXT is a user's message: put the model's chat template around it");
  command
      .add_option("--pattern", settings->pattern,
                  "How a rank file cuts words: cl100k_base, o200k_base, … or a regular expression")
      ->type_name("NAME|REGEX");
  add_common_options(command, settings->common);
  set_examples(command,
               "  assay tokenize Qwen3-0.6B 'Hello, world'\n"
               "  assay tokenize model.gguf --file book.txt --json -\n"
               "  assay tokenize Qwen3-0.6B --decode '9707, 11, 1879'\n"
               "  assay tokenize Qwen3-0.6B --chat 'Who are you?'\n");
  command.callback([settings, &action] { action = [settings] { return run(*settings); }; });
}

}  // namespace assay
