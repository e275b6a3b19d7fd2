#include "refimpl/tokenizers/sentencepiece_normalizer.h"

#include "refimpl/tokenizers/unicode.h"

namespace assay {

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceModel& model)
    : charsmap_(model.charsmap),
      add_dummy_prefix_(model.add_dummy_prefix),
      remove_extra_(model.remove_extra_spaces),
      escape_(model.escape_spaces),
      suffix_(model.space_as_suffix),
      keep_bytes_(model.byte_fallback) {
  std::vector<ByteTrie::Entry> entries;
  for (TokenId id = 0; id < model.vocabulary.size(); ++id) {
    if (model.vocabulary.kind(id) == PieceKind::user_defined)
      entries.emplace_back(model.vocabulary.at(id), id);
  }
  user_defined_ = ByteTrie(std::move(entries));
  for (unsigned char c = 1; c < plain_.size(); ++c)
    plain_[c] = c != ' ' && !user_defined_.has_first(static_cast<char>(c)) && charsmap_.leaves_alone(c);
}

std::size_t SentencePieceNormalizer::user_defined_prefix(std::string_view text) const {
  const auto match = user_defined_.longest_prefix(text);
  return match ? match->length : 0;
}

std::size_t SentencePieceNormalizer::plain_prefix(std::string_view text) const {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  while (length < text.size() && byte(length) < plain_.size() && plain_[byte(length)]) ++length;
  const bool sure = length == text.size() || (byte(length) < plain_.size() && byte(length) != 0);
  return sure || length == 0 ? length : length - 1;
}

SentencePieceNormalizer::Step SentencePieceNormalizer::step(std::string_view text) const {
  if (const std::size_t length = user_defined_prefix(text)) return {length, text.substr(0, length)};
  if (const auto mapped = charsmap_.longest(text)) return {mapped->length, mapped->with};
  const unicode::Character c = unicode::character_at(text, 0);
  // SentencePiece itself makes U+FFFD of a stray byte; where bytes have pieces, we keep it.
  if (!c.valid && !keep_bytes_) return {1, "\xEF\xBF\xBD"};
  return {c.length, text.substr(0, c.length)};
}

std::string SentencePieceNormalizer::normalize(std::string_view text, bool with_prefix) const {
  const std::string_view space = escape_ ? kSpaceMark : " ";
  if (remove_extra_) {
    while (!text.empty()) {
      const Step leading = step(text);
      if (leading.with != " ") break;
      text.remove_prefix(leading.length);
    }
  }
  if (text.empty()) return {};
  std::string out;
  out.reserve(text.size() + text.size() / 4 + 3);
  if (with_prefix && add_dummy_prefix_ && !suffix_) out += space;
  bool after_space = remove_extra_;
  while (!text.empty()) {
    if (const std::size_t length = plain_prefix(text)) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      after_space = false;
      continue;
    }
    Step next = step(text);
    text.remove_prefix(next.length);
    while (after_space && next.with.starts_with(' ')) next.with.remove_prefix(1);
    if (next.with.empty()) continue;
    for (const char c : next.with) {
      if (c == ' ')
        out += space;
      else
        out += c;
    }
    after_space = remove_extra_ && next.with.ends_with(' ');
  }
  while (remove_extra_ && out.ends_with(space)) out.resize(out.size() - space.size());
  if (with_prefix && add_dummy_prefix_ && suffix_) out += space;
  return out;
}

}  // namespace assay
