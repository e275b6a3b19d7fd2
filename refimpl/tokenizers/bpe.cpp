#include "refimpl/tokenizers/bpe.h"

#include <fmt/format.h>

#include <mutex>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/merge_cuts.h"
#include "refimpl/tokenizers/pair_table.h"
#include "refimpl/tokenizers/unicode.h"
#include "refimpl/tokenizers/word_cache.h"

namespace assay {
namespace {

// A session that asks the cache first, and merge_word() for the rest.
class CachedSession : public SubwordModel::Session {
 public:
  void encode(std::string_view word, std::vector<TokenId>& out) override { encode_whole(word, out); }

 protected:
  void encode_whole(std::string_view word, std::vector<TokenId>& out) {
    if (word.empty() || cache_.recall(word, out)) return;
    const std::size_t before = out.size();
    merge_word(word, out);
    cache_.remember(word, out.data() + before, out.size() - before);
  }
  virtual void merge_word(std::string_view word, std::vector<TokenId>& out) = 0;

 private:
  WordCache cache_;
};

struct RankedMerge {
  std::uint32_t rank = 0;
  TokenId merged = 0;
};

class Bpe : public SubwordModel {
 public:
  Bpe(const Vocabulary& vocabulary, const std::vector<MergePair>& merges, BpeOptions options)
      : options_(std::move(options)), merges_(merges.size()) {
    if (options_.byte_fallback) bytes_ = byte_pieces(vocabulary);
    std::uint32_t rank = 0;
    for (const auto& [left, right] : merges) add_merge(vocabulary, left, right, rank++);
    // Affixes tell the first and the last character of a word from others, and a part that is a piece is no word.
    can_cut_ = options_.continuing_prefix.empty() && options_.end_suffix.empty() && !options_.ignore_merges;
  }

  std::unique_ptr<Session> session(const Vocabulary& vocabulary) const override;

 private:
  class WordSession;

  void add_merge(const Vocabulary& vocabulary, const std::string& left, const std::string& right,
                 std::uint32_t rank) {
    const std::size_t prefix = std::min(options_.continuing_prefix.size(), right.size());
    const auto need = [&](const std::string& piece) {
      if (const auto id = vocabulary.find_own(piece)) return *id;
      throw Error::input(fmt::format("merge {} makes '{}', which the vocabulary does not have", rank,
                                     escape_for_terminal(piece.substr(0, 80))));
    };
    merges_.set(pair_key(need(left), need(right)), {rank, need(left + right.substr(prefix))});
  }

  // Only vocabularies that do not cut texts into words are asked for them.
  const MergeCuts& cuts(const Vocabulary& vocabulary) const {
    std::call_once(cuts_made_, [&] {
      merges_.for_each([&](const RankedMerge& merge) { cuts_.add(vocabulary.at(merge.merged)); });
    });
    return cuts_;
  }

  BpeOptions options_;
  PairTable<RankedMerge> merges_;
  std::vector<std::optional<TokenId>> bytes_;
  bool can_cut_ = false;
  mutable std::once_flag cuts_made_;
  mutable MergeCuts cuts_;
};

class Bpe::WordSession : public CachedSession {
 public:
  WordSession(const Bpe& model, const Vocabulary& vocabulary) : model_(model), vocabulary_(vocabulary) {}

  // A long word is a text without words. Unknown characters stay with their neighbours: a run of them may be one token,
  // and bytes they fall back to may merge.
  void encode(std::string_view word, std::vector<TokenId>& out) override {
    if (word.size() <= WordCache::kLongest || !model_.can_cut_) return encode_whole(word, out);
    const auto unknown = [&](std::string_view character) { return !vocabulary_.find_own(character); };
    model_.cuts(vocabulary_).split(word, unknown, [&](std::string_view part) { encode_whole(part, out); });
  }

 private:
  void merge_word(std::string_view word, std::vector<TokenId>& out) override {
    if (model_.options_.ignore_merges) {
      if (const auto whole = vocabulary_.find_own(word)) return out.push_back(*whole);
    }
    split(word);
    queue_.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
      const RankedMerge* merge = model_.merges_.find(pair_key(left.id, right.id));
      if (merge == nullptr) return std::nullopt;
      return Merge{static_cast<double>(merge->rank), merge->merged};
    });
    queue_.for_each([&](const MergeSymbol& symbol) { out.push_back(symbol.id); });
  }

  // The word's characters as symbols.
  void split(std::string_view word) {
    queue_.clear();
    unknown_.reset();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = unicode::character_at(word, at).length;
      add_character(word, at, length);
      at += length;
    }
    flush_unknown();
  }

  std::string_view affixed(std::string_view word, std::size_t at, std::size_t length) {
    const BpeOptions& options = model_.options_;
    const bool prefix = at > 0 && !options.continuing_prefix.empty();
    const bool suffix = at + length == word.size() && !options.end_suffix.empty();
    if (!prefix && !suffix) return word.substr(at, length);
    character_ = prefix ? options.continuing_prefix : "";
    character_ += word.substr(at, length);
    if (suffix) character_ += options.end_suffix;
    return character_;
  }

  void add_character(std::string_view word, std::size_t at, std::size_t length) {
    const auto begin = static_cast<std::uint32_t>(at);
    const std::string_view text = affixed(word, at, length);
    if (const auto id = vocabulary_.find_own(text)) {
      flush_unknown();
      queue_.add(begin, static_cast<std::uint32_t>(length), *id);
      return;
    }
    if (model_.options_.byte_fallback && add_bytes(text, begin)) return;
    if (!model_.options_.unk) return;
    if (unknown_ && !model_.options_.fuse_unk) flush_unknown();
    if (!unknown_) unknown_ = MergeSymbol{begin, 0};
    unknown_->length += static_cast<std::uint32_t>(length);
  }

  // An unknown character before it that waits for more of its kind goes on waiting: the crate puts it behind.
  bool add_bytes(std::string_view text, std::uint32_t begin) {
    for (const char c : text) {
      if (!model_.bytes_[static_cast<unsigned char>(c)]) return false;
    }
    for (const char c : text) queue_.add(begin++, 1, *model_.bytes_[static_cast<unsigned char>(c)]);
    return true;
  }

  void flush_unknown() {
    if (unknown_) queue_.add(unknown_->begin, unknown_->length, *model_.options_.unk);
    unknown_.reset();
  }

  const Bpe& model_;
  const Vocabulary& vocabulary_;
  MergeQueue queue_;
  std::optional<MergeSymbol> unknown_;
  std::string character_;
};

std::unique_ptr<SubwordModel::Session> Bpe::session(const Vocabulary& vocabulary) const {
  return std::make_unique<WordSession>(*this, vocabulary);
}

class Tiktoken : public SubwordModel {
 public:
  std::unique_ptr<Session> session(const Vocabulary& vocabulary) const override {
    return std::make_unique<ByteSession>(vocabulary);
  }

 private:
  class ByteSession : public CachedSession {
   public:
    explicit ByteSession(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        bytes_[byte] = rank({&c, 1});
      }
    }

   private:
    std::optional<TokenId> rank(std::string_view bytes) const {
      if (bytes.size() > vocabulary_.longest()) return std::nullopt;
      const auto id = vocabulary_.find_own(bytes);
      return id && vocabulary_.kind(*id) == PieceKind::normal ? id : std::nullopt;
    }

    void merge_word(std::string_view word, std::vector<TokenId>& out) override {
      if (const auto whole = rank(word)) return out.push_back(*whole);
      queue_.clear();
      for (std::size_t i = 0; i < word.size(); ++i) {
        const auto id = bytes_[static_cast<unsigned char>(word[i])];
        if (!id) {
          throw Error::input(fmt::format("the rank file has no token for the byte 0x{:02X}",
                                         static_cast<unsigned char>(word[i])));
        }
        queue_.add(static_cast<std::uint32_t>(i), 1, *id);
      }
      queue_.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
        const auto id = rank(word.substr(left.begin, left.length + right.length));
        if (!id) return std::nullopt;
        return Merge{static_cast<double>(*id), *id};
      });
      queue_.for_each([&](const MergeSymbol& symbol) { out.push_back(symbol.id); });
    }

    const Vocabulary& vocabulary_;
    MergeQueue queue_;
    std::optional<TokenId> bytes_[256];
  };
};

}  // namespace

std::unique_ptr<SubwordModel> make_bpe(const Vocabulary& vocabulary, const std::vector<MergePair>& merges,
                                       BpeOptions options) {
  return std::make_unique<Bpe>(vocabulary, merges, std::move(options));
}

std::unique_ptr<SubwordModel> make_tiktoken_bpe() {
  return std::make_unique<Tiktoken>();
}

}  // namespace assay
