#include "refimpl/tokenizers/wordpiece.h"

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

class WordPiece : public SubwordModel {
 public:
  explicit WordPiece(WordPieceOptions options) : options_(std::move(options)) {}
  std::unique_ptr<Session> session(const Vocabulary& vocabulary) const override {
    return std::make_unique<Speller>(options_, vocabulary);
  }

 private:
  class Speller : public Session {
   public:
    Speller(const WordPieceOptions& options, const Vocabulary& vocabulary)
        : options_(options), vocabulary_(vocabulary) {}

    void encode(std::string_view word, std::vector<TokenId>& out) override {
      if (word.empty()) return;
      const std::size_t before = out.size();
      if (too_long(word) || !spell(word, out)) {
        out.resize(before);
        out.push_back(options_.unk);
      }
    }

   private:
    bool too_long(std::string_view word) const {
      if (word.size() <= options_.most_characters) return false;
      std::size_t characters = 0;
      unicode::for_each_character(word, [&](const unicode::Character&, std::string_view) { ++characters; });
      return characters > options_.most_characters;
    }

    bool spell(std::string_view word, std::vector<TokenId>& out) {
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t length = longest_at(word, at, out);
        if (length == 0) return false;
        at += length;
      }
      return true;
    }

    // Appends the longest piece at `at` and returns its length in the word.
    std::size_t longest_at(std::string_view word, std::size_t at, std::vector<TokenId>& out) {
      const std::string& prefix = at == 0 ? options_.first_prefix : options_.continuing_prefix;
      for (std::size_t length = std::min(word.size() - at, vocabulary_.longest()); length > 0; --length) {
        piece_ = prefix;
        piece_ += word.substr(at, length);
        if (const auto id = vocabulary_.find_own(piece_)) {
          out.push_back(*id);
          return length;
        }
      }
      return 0;
    }

    const WordPieceOptions& options_;
    const Vocabulary& vocabulary_;
    std::string piece_;
  };

  WordPieceOptions options_;
};

class WordLevel : public SubwordModel {
 public:
  explicit WordLevel(std::optional<TokenId> unk) : unk_(unk) {}
  std::unique_ptr<Session> session(const Vocabulary& vocabulary) const override {
    return std::make_unique<LookUp>(unk_, vocabulary);
  }

 private:
  class LookUp : public Session {
   public:
    LookUp(std::optional<TokenId> unk, const Vocabulary& vocabulary) : unk_(unk), vocabulary_(vocabulary) {}
    void encode(std::string_view word, std::vector<TokenId>& out) override {
      const auto id = vocabulary_.find_own(word);
      if (!id && !unk_) {
        throw Error::input("the text holds a word the vocabulary does not have, and it has no unknown token");
      }
      out.push_back(id ? *id : *unk_);
    }

   private:
    std::optional<TokenId> unk_;
    const Vocabulary& vocabulary_;
  };

  std::optional<TokenId> unk_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_wordpiece(WordPieceOptions options) {
  return std::make_unique<WordPiece>(std::move(options));
}

std::unique_ptr<SubwordModel> make_word_level(std::optional<TokenId> unk) {
  return std::make_unique<WordLevel>(unk);
}

}  // namespace assay
