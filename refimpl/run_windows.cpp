#include "refimpl/run_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

using Tokens = std::vector<TokenId>;

std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs;
  std::string current;
  const auto finish = [&] {
    if (!trim(current).empty()) paragraphs.emplace_back(trim(current));
    current.clear();
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (trim(line).empty())
      finish();
    else
      current += fmt::format("{}{}", current.empty() ? "" : "\n", line);
    begin = end + 1;
  }
  finish();
  return paragraphs;
}

// What the tokenizer begins texts with, where this one begins so.
std::optional<TokenId> beginning(const Tokenizer& tokenizer, const Tokens& tokens) {
  const bool begins = tokenizer.bos() && !tokens.empty() && tokens.front() == *tokenizer.bos();
  return begins ? tokenizer.bos() : std::nullopt;
}

void add_paragraphs(const Tokenizer& tokenizer, const std::string& text, std::size_t context,
                    const WindowListener& listener) {
  for (const std::string& paragraph : paragraphs_of(text)) {
    Tokens tokens = tokenizer.encode(paragraph, {.parse_special = false});
    if (tokenizer.bos() && (tokens.empty() || tokens.front() != *tokenizer.bos()))
      tokens.insert(tokens.begin(), *tokenizer.bos());
    if (tokenizer.eos() && tokens.back() != *tokenizer.eos()) tokens.push_back(*tokenizer.eos());
    if (!for_each_window(tokens, beginning(tokenizer, tokens), {.context = context}, listener)) return;
  }
}

}  // namespace

void for_each_window(const Tokenizer& tokenizer, const std::string& text, const WindowRule& rule,
                     const WindowListener& listener) {
  if (rule.context < 2) throw Error::usage("a window has at least 2 tokens");
  if (rule.by_paragraph) return add_paragraphs(tokenizer, text, rule.context, listener);
  const Tokens tokens = tokenizer.encode(text, {.parse_special = false});
  for_each_window(tokens, beginning(tokenizer, tokens), rule, listener);
}

}  // namespace assay
