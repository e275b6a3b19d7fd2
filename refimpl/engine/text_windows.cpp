#include "refimpl/engine/text_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

using Tokens = std::vector<TokenId>;

Tokens part(const Tokens& tokens, std::size_t begin, std::size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

// One after the other. Where the text begins with BOS, so does each window. False: no more is wanted.
bool add_whole(const Tokens& tokens, std::optional<TokenId> bos, std::size_t context,
               const WindowListener& listener) {
  for (std::size_t i = 0; i < tokens.size();) {
    Tokens window;
    if (bos && i != 0) window.push_back(*bos);
    const std::size_t count = std::min(context - window.size(), tokens.size() - i);
    window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i),
                  tokens.begin() + static_cast<std::ptrdiff_t>(i + count));
    i += count;
    if (!listener({std::move(window)})) return false;
  }
  return true;
}

bool add_strided(const Tokens& tokens, const WindowRule& rule, const WindowListener& listener) {
  for (std::size_t begin = 0, counted = 1; counted < tokens.size(); begin += rule.stride) {
    const std::size_t end = std::min(begin + rule.context, tokens.size());
    if (!listener({part(tokens, begin, end), std::max<std::size_t>(1, counted - begin)})) return false;
    counted = end;
  }
  return true;
}

bool add_second_halves(const Tokens& tokens, std::optional<TokenId> bos, std::size_t context,
                       const WindowListener& listener) {
  if (tokens.size() < 2 * context)
    throw Error::input(fmt::format("{} tokens are fewer than two windows of {}", tokens.size(), context))
        .remedy("give a longer text, or a smaller --context");
  for (std::size_t begin = 0; begin + context <= tokens.size(); begin += context) {
    TextWindow window = {part(tokens, begin, begin + context), context / 2 + 1};
    if (bos) window.tokens.front() = *bos;
    if (!listener(window)) return false;
  }
  return true;
}

}  // namespace

bool for_each_window(const Tokens& tokens, std::optional<TokenId> bos, const WindowRule& rule,
                     const WindowListener& listener) {
  switch (rule.kind) {
    case WindowRule::Kind::whole: return add_whole(tokens, bos, rule.context, listener);
    case WindowRule::Kind::transformers: return add_strided(tokens, rule, listener);
    case WindowRule::Kind::llama_cpp: return add_second_halves(tokens, bos, rule.context, listener);
  }
  return true;
}

}  // namespace assay
