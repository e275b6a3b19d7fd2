#include "refimpl/tokenizers/sentencepiece.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "core/system/error.h"
#include "refimpl/tokenizers/merge_cuts.h"
#include "refimpl/tokenizers/scored_merger.h"
#include "refimpl/tokenizers/sentencepiece_normalizer.h"
#include "refimpl/tokenizers/unicode.h"
#include "refimpl/tokenizers/unigram.h"
#include "refimpl/tokenizers/word_cache.h"

namespace assay {
namespace {

// "▁ab▁c" -> "▁ab", "▁c". The library cuts so, too, where the normalizer puts marks behind words.
void split_words(std::string_view text, const TakePiece& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kSpaceMark, 1), text.size());
    take(text.substr(0, end));
    text.remove_prefix(end);
  }
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceModel model, SentencePieceOptions options)
      : Tokenizer(options.vocabulary.size() > 0 ? std::move(options.vocabulary) : model.vocabulary,
                  model.special),
        model_(std::move(model)),
        options_(std::move(options)),
        normalizer_(model_),
        added_(options_.added),
        bytes_(model_.byte_fallback ? byte_pieces(model_.vocabulary)
                                    : std::vector<std::optional<TokenId>>(256)) {
    if (model_.vocabulary.longest() > kLongestPiece)
      throw Error::input("a piece is longer than any that SentencePiece makes");
    if (model_.type == SentencePieceModel::Type::unigram) {
      const UnigramOptions unigram{special().unk, model_.byte_fallback, true};
      unigram_ = make_unigram(model_.vocabulary, model_.scores, unigram);
    }
  }

  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const override {
    check_length(text);
    std::vector<TokenId> ids;
    if (options.add_special && options_.add_bos && bos()) ids.push_back(*bos());
    bool prefix = true;  // the next text begins with a space
    for (const TextPiece& part : added_.split(text, options.parse_special)) {
      if (part.token) {
        ids.push_back(*part.token);
        prefix = options_.as_llama_cpp;
      } else {
        encode_raw(part.text, prefix, ids);
        prefix = false;
      }
    }
    if (options.add_special && options_.add_eos && eos()) ids.push_back(*eos());
    return ids;
  }

  std::unique_ptr<TokenDecoder> decoder(bool skip_special) const override;

 private:
  static constexpr std::size_t kLongestPiece = 4096;
  class Decoder;

  void encode_raw(std::string_view raw, bool prefix, std::vector<TokenId>& ids) const {
    const std::string text = normalizer_.normalize(raw, prefix);
    check_length(text);
    if (unigram_) return unigram_->session(model_.vocabulary)->encode(text, ids);
    bool after_unknown = false;
    const auto take = [&](std::string_view piece) { after_unknown = add_piece(piece, after_unknown, ids); };
    switch (model_.type) {
      case SentencePieceModel::Type::word: return split_words(text, take);
      case SentencePieceModel::Type::character: return split_characters(text, take);
      default: return merge(text, ids);
    }
  }

  void merge(std::string_view text, std::vector<TokenId>& ids) const {
    ScoredMerger merger(model_.vocabulary, model_.scores, options_.as_llama_cpp);
    const auto frozen = [&](std::string_view rest) { return normalizer_.user_defined_prefix(rest); };
    bool after_unknown = false, known = true;
    const TakePiece take = [&](std::string_view piece) {
      after_unknown = add_piece(piece, after_unknown, ids);
      known = known && !after_unknown;
    };
    if (!cuts().has_value()) return merger.split(text, frozen, take);
    WordCache cache;
    const auto nowhere = [](std::string_view) { return false; };
    cuts()->split(text, nowhere, [&](std::string_view part) {
      if (cache.recall(part, ids)) return void(after_unknown = false);
      const std::size_t before = ids.size();
      known = true;
      merger.split(part, frozen, take);
      if (known) cache.remember(part, ids.data() + before, ids.size() - before);
    });
  }

  // None where it matters to a piece what merged elsewhere in the text: unused ones are taken apart again as they were
  // last put together. Characters of user-defined pieces meet, too, so that none is cut.
  const std::optional<MergeCuts>& cuts() const {
    std::call_once(cuts_looked_for_, [&] {
      cuts_.emplace();
      const Vocabulary& pieces = model_.vocabulary;
      for (TokenId id = 0; id < pieces.size() && cuts_; ++id) {
        const PieceKind kind = pieces.kind(id);
        if (kind == PieceKind::unused && !options_.as_llama_cpp)
          cuts_.reset();
        else if (kind != PieceKind::absent)
          cuts_->add(pieces.at(id));
      }
    });
    return cuts_;
  }

  void split_characters(std::string_view text, const TakePiece& take) const {
    while (!text.empty()) {
      const std::size_t whole = normalizer_.user_defined_prefix(text);
      const std::size_t length = whole > 0 ? whole : unicode::character_at(text, 0).length;
      take(text.substr(0, length));
      text.remove_prefix(length);
    }
  }

  // The id of a piece, its bytes, or the unknown token, once for a run of them. True: it was unknown.
  bool add_piece(std::string_view piece, bool after_unknown, std::vector<TokenId>& ids) const {
    const auto id = model_.vocabulary.find(piece);
    if (id && stands_for_text(model_.vocabulary.kind(*id))) {
      ids.push_back(*id);
      return false;
    }
    const auto known = [&](char c) { return bytes_[static_cast<unsigned char>(c)].has_value(); };
    if (std::all_of(piece.begin(), piece.end(), known)) {
      for (const char c : piece) ids.push_back(*bytes_[static_cast<unsigned char>(c)]);
      return false;
    }
    if (!special().unk) throw Error::input("the text holds a character the vocabulary has no piece for");
    if (!after_unknown || options_.as_llama_cpp) ids.push_back(*special().unk);
    return true;
  }

  bool stands_for_text(PieceKind kind) const {
    if (kind == PieceKind::unknown || options_.as_llama_cpp) return kind != PieceKind::unknown;
    const bool merged = model_.type == SentencePieceModel::Type::bpe;
    return kind != PieceKind::control && (kind != PieceKind::unused || merged);
  }

  SentencePieceModel model_;
  SentencePieceOptions options_;
  SentencePieceNormalizer normalizer_;
  AddedTokenFinder added_;
  std::vector<std::optional<TokenId>> bytes_;
  std::unique_ptr<SubwordModel> unigram_;
  mutable std::once_flag cuts_looked_for_;
  mutable std::optional<MergeCuts> cuts_;
};

class SentencePieceTokenizer::Decoder : public TokenDecoder {
 public:
  Decoder(const SentencePieceTokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  std::string push(TokenId id) override {
    const std::string& piece = tokenizer_.piece(id);
    switch (tokenizer_.vocabulary().kind(id)) {
      case PieceKind::control: return skip_special_ ? "" : text(piece);
      case PieceKind::unknown: return at_start_ = false, tokenizer_.model_.unk_surface;
      case PieceKind::byte:
        if (const auto byte = byte_of_piece(piece))
          return at_start_ = false, std::string(1, static_cast<char>(*byte));
        break;
      default: break;
    }
    return text(piece);
  }
  std::string finish() override { return {}; }

 private:
  // Marks become spaces, but for the one that normalizing put before the first word.
  std::string text(std::string_view piece) {
    const SentencePieceModel& model = tokenizer_.model_;
    if (at_start_ && (model.add_dummy_prefix || model.remove_extra_spaces) && piece.starts_with(kSpaceMark)) {
      piece.remove_prefix(kSpaceMark.size());
      at_start_ = model.remove_extra_spaces && piece.empty();
    } else {
      at_start_ = at_start_ && piece.empty();
    }
    std::string out;
    for (std::size_t at = 0; at < piece.size();) {
      const bool mark = piece.substr(at).starts_with(kSpaceMark);
      out += mark ? ' ' : piece[at];
      at += mark ? kSpaceMark.size() : 1;
    }
    return out;
  }

  const SentencePieceTokenizer& tokenizer_;
  bool skip_special_, at_start_ = true;
};

std::unique_ptr<TokenDecoder> SentencePieceTokenizer::decoder(bool skip_special) const {
  return std::make_unique<Decoder>(*this, skip_special);
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, SentencePieceOptions options) {
  return std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(options));
}

}  // namespace assay
