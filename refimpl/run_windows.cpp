#include "refimpl/run_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

using Tokens = std::vector<TokenId>;

Tokens part(const Tokens& tokens, std::size_t begin, std::size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

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

bool begins_with_bos(const Tokenizer& tokenizer, const Tokens& tokens) {
  return tokenizer.bos() && !tokens.empty() && tokens.front() == *tokenizer.bos();
}

// One after the other. Where the text begins with BOS, so does each window. False: no more is wanted.
bool add_whole(const Tokenizer& tokenizer, const Tokens& tokens, std::size_t context,
               const WindowListener& listener) {
  const bool begins = begins_with_bos(tokenizer, tokens);
  for (std::size_t i = 0; i < tokens.size();) {
    Tokens window;
    if (begins && i != 0) window.push_back(*tokenizer.bos());
    const std::size_t count = std::min(context - window.size(), tokens.size() - i);
    window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i),
                  tokens.begin() + static_cast<std::ptrdiff_t>(i + count));
    i += count;
    if (!listener({std::move(window)})) return false;
  }
  return true;
}

void add_strided(const Tokens& tokens, const WindowRule& rule, const WindowListener& listener) {
  for (std::size_t begin = 0, counted = 1; counted < tokens.size(); begin += rule.stride) {
    const std::size_t end = std::min(begin + rule.context, tokens.size());
    if (!listener({part(tokens, begin, end), std::max<std::size_t>(1, counted - begin)})) return;
    counted = end;
  }
}

void add_second_halves(const Tokenizer& tokenizer, const Tokens& tokens, std::size_t context,
                       const WindowListener& listener) {
  if (tokens.size() < 2 * context)
    throw Error::input(fmt::format("{} tokens are fewer than two windows of {}", tokens.size(), context))
        .remedy("give a longer text, or a smaller --context");
  const bool begins = begins_with_bos(tokenizer, tokens);
  for (std::size_t begin = 0; begin + context <= tokens.size(); begin += context) {
    TextWindow window = {part(tokens, begin, begin + context), context / 2 + 1};
    if (begins) window.tokens.front() = *tokenizer.bos();
    if (!listener(window)) return;
  }
}

void add_paragraphs(const Tokenizer& tokenizer, const std::string& text, std::size_t context,
                    const WindowListener& listener) {
  for (const std::string& paragraph : paragraphs_of(text)) {
    Tokens tokens = tokenizer.encode(paragraph, {.parse_special = false});
    if (tokenizer.bos() && (tokens.empty() || tokens.front() != *tokenizer.bos()))
      tokens.insert(tokens.begin(), *tokenizer.bos());
    if (tokenizer.eos() && tokens.back() != *tokenizer.eos()) tokens.push_back(*tokenizer.eos());
    if (!add_whole(tokenizer, tokens, context, listener)) return;
  }
}

}  // namespace

void for_each_window(const Tokenizer& tokenizer, const std::string& text, const WindowRule& rule,
                     const WindowListener& listener) {
  if (rule.context < 2) throw Error::usage("a window has at least 2 tokens");
  if (rule.by_paragraph) return add_paragraphs(tokenizer, text, rule.context, listener);
  const Tokens tokens = tokenizer.encode(text, {.parse_special = false});
  switch (rule.kind) {
    case WindowRule::Kind::whole: add_whole(tokenizer, tokens, rule.context, listener); break;
    case WindowRule::Kind::transformers: add_strided(tokens, rule, listener); break;
    case WindowRule::Kind::llama_cpp: add_second_halves(tokenizer, tokens, rule.context, listener); break;
  }
}

}  // namespace assay
