#include "refimpl/tokenizers/added_tokens.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

constexpr std::size_t kLongestToken = 1024;

unicode::Character last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  const unicode::Character c = unicode::character_at(text, begin);
  return begin + c.length == text.size() ? c : unicode::Character{0xFFFD, 1, false};
}

bool ends_in_word(std::string_view text) {
  return !text.empty() && unicode::is_word(last_character(text).code);
}
bool begins_with_word(std::string_view text) {
  return !text.empty() && unicode::is_word(unicode::character_at(text, 0).code);
}

std::size_t spaces_at_end(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const unicode::Character c = last_character(text.substr(0, text.size() - length));
    if (!unicode::is_whitespace(c.code)) break;
    length += c.length;
  }
  return length;
}
std::size_t spaces_at_start(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const unicode::Character c = unicode::character_at(text, length);
    if (!unicode::is_whitespace(c.code)) break;
    length += c.length;
  }
  return length;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<ByteTrie::Entry> entries;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].content.size() > kLongestToken) {
      throw Error::input(fmt::format("added token {} has {} bytes; at most {} are taken", tokens_[i].id,
                                     tokens_[i].content.size(), kLongestToken));
    }
    entries.emplace_back(tokens_[i].content, i);
  }
  trie_ = ByteTrie(std::move(entries));
}

std::vector<TextPiece> AddedTokenFinder::split(std::string_view text, bool parse_special) const {
  std::vector<TextPiece> pieces;
  std::size_t done = 0;  // up to here the text is in `pieces`
  for (std::size_t at = 0; at < text.size() && !trie_.empty();) {
    if (!trie_.has_first(text[at])) {
      ++at;
      continue;
    }
    const auto match = trie_.longest_prefix(text.substr(at));
    if (!match) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match->value];
    std::size_t begin = at, end = at + match->length;
    at = end;
    if (token.special && !parse_special) continue;
    if (token.single_word && (ends_in_word(text.substr(0, begin)) || begins_with_word(text.substr(end))))
      continue;
    // Where the token before took this one for white space, both count, and the text goes on behind this one.
    if (token.lstrip && begin > done) begin -= spaces_at_end(text.substr(done, begin - done));
    if (token.rstrip) end += spaces_at_start(text.substr(end));
    if (token.lstrip && begin < done) {
      begin = done;
      if (end <= done) continue;  // white space itself, and all of it taken by the token before
    }
    if (begin > done) pieces.push_back({text.substr(done, begin - done), std::nullopt});
    pieces.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), std::nullopt});
  return pieces;
}

}  // namespace assay
