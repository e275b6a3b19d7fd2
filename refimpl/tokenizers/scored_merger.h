// BPE by scores, as SentencePiece merges: of the pairs whose concatenation is a piece, the one of the highest score.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "refimpl/tokenizers/merge.h"
#include "refimpl/tokenizers/unicode.h"
#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

// What a model kind makes of normalized text: places of pieces, unknown ones included.
using TakePiece = std::function<void(std::string_view piece)>;

class ScoredMerger {
 public:
  ScoredMerger(const Vocabulary& vocabulary, const std::vector<double>& scores, bool any_kind)
      : vocabulary_(vocabulary), scores_(scores), any_kind_(any_kind) {}

  // frozen(text): bytes at the text's beginning that are a symbol for good; 0: none.
  template <class Frozen>
  void split(std::string_view text, Frozen frozen, const TakePiece& take) {
    queue_.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t whole = frozen(text.substr(at));
      const std::size_t length = whole > 0 ? whole : unicode::character_at(text, at).length;
      queue_.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), whole > 0 ? kFrozen : 0);
      at += length;
    }
    parts_.clear();
    queue_.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
      if (left.id == kFrozen || right.id == kFrozen) return std::nullopt;
      return merge(text, left, right);
    });
    queue_.for_each(
        [&](const MergeSymbol& symbol) { resegment(text.substr(symbol.begin, symbol.length), take); });
  }

 private:
  static constexpr TokenId kFrozen = ~0u;

  std::optional<Merge> merge(std::string_view text, const MergeSymbol& left, const MergeSymbol& right) {
    const std::size_t length = std::size_t{left.length} + right.length;
    if (length > vocabulary_.longest()) return std::nullopt;
    const std::string_view piece = text.substr(left.begin, length);
    const auto id = vocabulary_.find(piece);
    if (!id) return std::nullopt;
    const PieceKind kind = vocabulary_.kind(*id);
    const bool mergeable =
        kind == PieceKind::normal || kind == PieceKind::user_defined || kind == PieceKind::unused;
    if (!mergeable && !any_kind_) return std::nullopt;
    // Unused pieces may be stages of a merge; one that is left over is taken apart again.
    if (kind == PieceKind::unused) parts_.insert_or_assign(std::string(piece), left.length);
    return Merge{-scores_[*id], 0};
  }

  void resegment(std::string_view piece, const TakePiece& take) {
    const auto id = vocabulary_.find(piece);
    const bool unused = id && vocabulary_.kind(*id) == PieceKind::unused;
    const auto cut = unused && !any_kind_ ? parts_.find(std::string(piece)) : parts_.end();
    if (cut == parts_.end()) return take(piece);
    const std::size_t left = cut->second;
    resegment(piece.substr(0, left), take);  // no deeper than a piece is long
    resegment(piece.substr(left), take);
  }

  const Vocabulary& vocabulary_;
  const std::vector<double>& scores_;
  bool any_kind_;
  MergeQueue queue_;
  std::unordered_map<std::string, std::size_t> parts_;  // unused piece -> bytes of its left part
};

}  // namespace assay
