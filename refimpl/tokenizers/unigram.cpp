#include "refimpl/tokenizers/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/system/error.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

constexpr double kUnknownPenalty = 10;       // below the least score: both implementations
constexpr std::size_t kLongestPiece = 4096;  // in bytes; SentencePiece trains to 16 characters

template <class Score>
class Unigram : public SubwordModel {
 public:
  Unigram(const Vocabulary& vocabulary, std::vector<double> scores, UnigramOptions options)
      : options_(options), scores_(scores.begin(), scores.end()) {
    if (vocabulary.longest() > kLongestPiece) {
      throw Error::input(fmt::format("a piece of {} bytes; Unigram vocabularies have at most {}",
                                     vocabulary.longest(), kLongestPiece));
    }
    scores_.resize(vocabulary.size());
    find_range(vocabulary);
    std::vector<ByteTrie::Entry> entries;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (usable(vocabulary.kind(id))) entries.emplace_back(vocabulary.at(id), id);
      // The length of user-defined pieces is in their favour, so that they are never cut.
      if (options_.sentencepiece && vocabulary.kind(id) == PieceKind::user_defined) {
        scores_[id] = static_cast<Score>(static_cast<double>(vocabulary.at(id).size() * greatest_) - 0.1);
      }
    }
    trie_ = ByteTrie(std::move(entries));
    if (options_.byte_fallback) bytes_ = byte_pieces(vocabulary);
  }

  std::unique_ptr<Session> session(const Vocabulary&) const override {
    return std::make_unique<Lattice>(*this);
  }

 private:
  class Lattice;

  bool usable(PieceKind kind) const {
    if (kind == PieceKind::absent) return false;
    if (!options_.sentencepiece) return true;
    return kind == PieceKind::normal || kind == PieceKind::user_defined;
  }

  void find_range(const Vocabulary& vocabulary) {
    least_ = std::numeric_limits<Score>::max();
    greatest_ = std::numeric_limits<Score>::lowest();
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const PieceKind kind = vocabulary.kind(id);
      if (kind == PieceKind::absent || (options_.sentencepiece && kind != PieceKind::normal)) continue;
      least_ = std::min(least_, scores_[id]);
      greatest_ = std::max(greatest_, scores_[id]);
    }
    if (least_ > greatest_) least_ = greatest_ = 0;
  }

  UnigramOptions options_;
  std::vector<Score> scores_;
  Score least_ = 0, greatest_ = 0;
  ByteTrie trie_;
  std::vector<std::optional<TokenId>> bytes_;
};

template <class Score>
class Unigram<Score>::Lattice : public Session {
 public:
  explicit Lattice(const Unigram& model) : model_(model) {}

  // A long text is laid out part by part, so that what is worked on stays near. Scores go on from one to the next: where
  // they are float's, rounding depends on how much is summed up.
  void encode(std::string_view word, std::vector<TokenId>& out) override {
    Score score = 0;
    while (!word.empty()) {
      const std::size_t length = fill(word, score);
      trace(length);
      write(word.substr(0, length), out);
      score = nodes_[length].score;
      word.remove_prefix(length);
    }
  }

 private:
  static constexpr std::uint32_t kUnreached = ~0u;
  static constexpr TokenId kNoPiece = ~0u;
  static constexpr std::size_t kPart = 1024;  // in bytes
  struct Node {                               // the best way to a place of the text
    Score score = 0;
    std::uint32_t from = kUnreached;
    TokenId id = kNoPiece;  // none: an unknown character
  };

  void offer(std::size_t from, std::size_t to, Score score, TokenId id) {
    if (to >= nodes_.size()) nodes_.resize(std::max(to + 1, 2 * nodes_.size()));
    if (nodes_[to].from == kUnreached || score > nodes_[to].score)
      nodes_[to] = {score, static_cast<std::uint32_t>(from), id};
  }

  // Lays out `word` to its end, or to a place of more than kPart bytes that every way goes through, and not between
  // unknown characters: how far.
  std::size_t fill(std::string_view word, Score score) {
    const Score unknown = model_.least_ - static_cast<Score>(kUnknownPenalty);
    nodes_.assign(std::min(word.size(), kPart) + 1, {});
    nodes_[0] = {score, 0, kNoPiece};
    std::size_t at = 0;
    for (std::size_t reached = 0; at < word.size();) {
      if (at == reached && at > kPart && !is_unknown(nodes_[at])) break;
      const std::size_t character = unicode::character_at(word, at).length;
      const Score so_far = nodes_[at].score;
      bool single = false;
      model_.trie_.for_each_prefix(word.substr(at), [&](std::size_t length, std::uint32_t id) {
        offer(at, at + length, so_far + model_.scores_[id], id);
        single = single || length == character;
        reached = std::max(reached, at + length);
      });
      if (!single) offer(at, at + character, so_far + unknown, kNoPiece);
      at += character;
      reached = std::max(reached, at);
    }
    return at;
  }

  void trace(std::size_t length) {
    path_.clear();
    for (std::size_t at = length; at > 0; at = nodes_[at].from) path_.push_back(at);
    std::reverse(path_.begin(), path_.end());
  }

  // A run of unknown characters is one token, unless it falls back to bytes.
  void write(std::string_view word, std::vector<TokenId>& out) {
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const Node& node = nodes_[path_[i]];
      if (!is_unknown(node)) {
        out.push_back(node.id);
        continue;
      }
      const std::size_t begin = node.from;
      while (i + 1 < path_.size() && is_unknown(nodes_[path_[i + 1]])) ++i;
      write_unknown(word.substr(begin, path_[i] - begin), out);
    }
  }
  bool is_unknown(const Node& node) const { return node.id == kNoPiece || node.id == model_.options_.unk; }

  void write_unknown(std::string_view text, std::vector<TokenId>& out) {
    const auto& bytes = model_.bytes_;
    const auto known = [&](char c) { return bytes[static_cast<unsigned char>(c)].has_value(); };
    if (!bytes.empty() && std::all_of(text.begin(), text.end(), known)) {
      for (const char c : text) out.push_back(*bytes[static_cast<unsigned char>(c)]);
    } else if (model_.options_.unk) {
      out.push_back(*model_.options_.unk);
    } else {
      throw Error::input(
          "the text holds a character the vocabulary does not have, and it has no unknown token");
    }
  }

  const Unigram& model_;
  std::vector<Node> nodes_;  // by byte offset
  std::vector<std::size_t> path_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_unigram(const Vocabulary& vocabulary, std::vector<double> scores,
                                           UnigramOptions options) {
  if (options.sentencepiece) return std::make_unique<Unigram<float>>(vocabulary, std::move(scores), options);
  return std::make_unique<Unigram<double>>(vocabulary, std::move(scores), options);
}

}  // namespace assay
