#include "kernels/logprobs/token_ids.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/text.h"

namespace assay::logprobs {
namespace {

bool has_ids(const SavedText& text) {
  return std::all_of(text.tokens.begin(), text.tokens.end(),
                     [](const SavedToken& t) { return t.id.has_value(); });
}

// SentencePiece puts a blank before a text, and takes it off again.
std::string_view without_blank(std::string_view piece) {
  return piece.starts_with(' ') ? piece.substr(1) : piece;
}

// Of each token's bytes its id, where the tokenizer cuts all of them as they were cut.
std::string cut_again(const SavedText& text, const Tokenizer& tokenizer, std::vector<TokenId>& ids) {
  std::string written;
  for (const SavedToken& token : text.tokens) written += token.text;
  const std::vector<TokenId> cut = tokenizer.encode(written, {.add_special = false});
  if (cut.size() != text.tokens.size())
    return fmt::format("the text is retokenized differently: {} tokens, {} by the model's tokenizer",
                       text.tokens.size(), cut.size());
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const std::string own = tokenizer.decode(std::span(cut).subspan(i, 1));
    if (without_blank(own) != without_blank(text.tokens[i].text) &&
        tokenizer.piece(cut[i]) != text.tokens[i].text)
      return fmt::format(
          "the text is retokenized differently: token {} is \"{}\", \"{}\" by the model's tokenizer", i,
          escape_for_terminal(text.tokens[i].text), escape_for_terminal(own));
  }
  ids.insert(ids.end(), cut.begin(), cut.end());
  return {};
}

// The prompt of which the text was saved, cut to as many tokens as the server says.
std::string cut_prompt(const SavedText& text, const Tokenizer& tokenizer, std::vector<TokenId>& ids) {
  for (const bool special : {false, true}) {
    ids = tokenizer.encode(*text.prompt_text, {.add_special = special});
    if (ids.size() == text.unknown_before) return {};
  }
  return fmt::format("the prompt is retokenized differently: {} tokens, {} by the model's tokenizer",
                     text.unknown_before, ids.size());
}

std::string beyond(TokenId id, std::size_t vocabulary) {
  return fmt::format("token {} is beyond the model's vocabulary of {}", id, vocabulary);
}

// BOS, of a tokenizer that begins texts with it.
std::optional<TokenId> added_bos(const Tokenizer& tokenizer) {
  const std::vector<TokenId> ids = tokenizer.encode("a", {.add_special = true});
  return !ids.empty() && tokenizer.bos() == ids.front() ? tokenizer.bos() : std::nullopt;
}

}  // namespace

bool has_ids(const SavedResponses& saved) {
  return std::all_of(saved.texts.begin(), saved.texts.end(),
                     [](const SavedText& text) { return has_ids(text); });
}

bool needs_tokenizer(const SavedResponses& saved) {
  return std::any_of(saved.texts.begin(), saved.texts.end(), [](const SavedText& text) {
    return !has_ids(text) || text.bos_over_first || (text.prompt_text && text.unknown_before > 0);
  });
}

EntireText entire_text(const SavedText& text, const Tokenizer* tokenizer, std::span<const TokenId> before,
                       std::size_t vocabulary) {
  EntireText whole;
  for (const SavedToken& token : text.tokens)
    if (token.id && *token.id >= vocabulary && whole.fault.empty())
      whole.fault = beyond(*token.id, vocabulary);
  if (whole.fault.empty() && text.unknown_before > 0) {
    if (!before.empty())
      whole.ids.assign(before.begin(), before.end());
    else if (text.prompt_text && tokenizer != nullptr)
      whole.fault = cut_prompt(text, *tokenizer, whole.ids);
    else
      whole.fault =
          "the tokens before the first are not saved: save the prompt's ids, or give them by --prompt-tokens";
    whole.before = whole.ids.size();
  }
  if (!whole.fault.empty()) return whole;
  if (has_ids(text)) {
    for (const SavedToken& token : text.tokens) whole.ids.push_back(*token.id);
  } else if (tokenizer == nullptr) {
    whole.fault = "tokens have no ids, and the model no tokenizer";
  } else {
    whole.fault = cut_again(text, *tokenizer, whole.ids);
  }
  if (text.bos_over_first && tokenizer != nullptr && !whole.ids.empty())
    whole.ids.front() = added_bos(*tokenizer).value_or(whole.ids.front());
  for (const TokenId id : whole.ids)
    if (id >= vocabulary && whole.fault.empty()) whole.fault = beyond(id, vocabulary);
  return whole;
}

}  // namespace assay::logprobs
