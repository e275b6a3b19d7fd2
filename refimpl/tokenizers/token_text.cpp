#include "refimpl/tokenizers/token_text.h"

#include <algorithm>
#include <optional>

#include "core/system/error.h"

namespace assay {
namespace {

bool adds_text(PieceKind kind) {
  return kind == PieceKind::normal || kind == PieceKind::user_defined || kind == PieceKind::byte;
}

// A token of nothing but letters, after which others are decoded.
std::optional<TokenId> plain_token(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.vocabulary().kind(id) != PieceKind::normal) continue;
    const std::string& piece = tokenizer.piece(id);
    const bool letters = std::all_of(piece.begin(), piece.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (letters && !piece.empty()) return id;
  }
  return std::nullopt;
}

std::string decoded(const Tokenizer& tokenizer, std::optional<TokenId> before, TokenId id,
                    bool skip_special) {
  const auto decoder = tokenizer.decoder(skip_special);
  if (before) decoder->push(*before);
  std::string text = decoder->push(id);
  return text + decoder->finish();
}

// All tokens in a row, each twice (decoders of speech drop what is said again), and the same from behind.
void require_sums(const Tokenizer& tokenizer, const TextOfTokens& texts) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    if (!texts.later[id].empty()) ids.insert(ids.end(), {id, id});
  for (int pass = 0; pass < 2 && !ids.empty(); ++pass) {
    std::string sum = texts.first[ids.front()];
    for (std::size_t i = 1; i < ids.size(); ++i) sum += texts.later[ids[i]];
    if (tokenizer.decode(ids, true) != sum)
      throw Error::input("this tokenizer's text is more than its tokens' texts one after the other")
          .remedy("leave out the grammar: it reads token by token");
    std::reverse(ids.begin(), ids.end());
  }
}

}  // namespace

TextBehindOthers::TextBehindOthers(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), before_(plain_token(tokenizer)), skip_special_(skip_special) {}

std::string TextBehindOthers::operator()(TokenId id) const {
  return decoded(tokenizer_, before_, id, skip_special_);
}

TextOfTokens text_of_tokens(const Tokenizer& tokenizer) {
  TextOfTokens texts = {std::vector<std::string>(tokenizer.vocab_size()),
                        std::vector<std::string>(tokenizer.vocab_size())};
  const TextBehindOthers later(tokenizer, true);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!adds_text(tokenizer.vocabulary().kind(id)) || tokenizer.ends_generation(id)) continue;
    texts.first[id] = decoded(tokenizer, std::nullopt, id, true);
    texts.later[id] = later(id);
  }
  require_sums(tokenizer, texts);
  return texts;
}

}  // namespace assay
