// The pieces of a vocabulary, by id and by text, and what is known of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/string_table.h"

namespace assay {

using TokenId = std::uint32_t;

inline constexpr std::size_t kMostPieces = 4'000'000;

// Named and numbered as in SentencePiece and GGUF.
enum class PieceKind : std::uint8_t {
  absent = 0,  // a hole in the numbering
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

class Vocabulary {
 public:
  // A piece of the model's. Ids may come in any order. Error::input for one beyond kMostPieces. Where two ids have one
  // text, find() gives the first that was set.
  void set(TokenId id, std::string_view text, PieceKind kind = PieceKind::normal);
  // A token that stands beside them: it is found in a text before the model sees the rest, and is nothing to the model.
  void add(TokenId id, std::string_view text, PieceKind kind);
  void set_kind(TokenId id, PieceKind kind) { kinds_[id] = kind; }

  std::size_t size() const { return pieces_.size(); }
  std::optional<TokenId> find(std::string_view text) const {
    const Named* named = ids_.find(text);
    return named == nullptr ? std::nullopt : std::optional<TokenId>(named->id);
  }
  // Of the model's own pieces: what a model looks up.
  std::optional<TokenId> find_own(std::string_view text) const {
    const Named* named = ids_.find(text);
    return named == nullptr || named->beside ? std::nullopt : std::optional<TokenId>(named->id);
  }
  const std::string& at(TokenId id) const;  // Error::input where there is none
  PieceKind kind(TokenId id) const { return id < kinds_.size() ? kinds_[id] : PieceKind::absent; }
  std::size_t longest() const { return longest_; }  // bytes of the longest piece

 private:
  struct Named {
    TokenId id : 31 = 0;  // below kMostPieces
    TokenId beside : 1 = 0;
  };
  void put(Named named, std::string_view text, PieceKind kind);

  std::vector<std::string> pieces_;
  std::vector<PieceKind> kinds_;
  StringTable<Named> ids_;
  std::size_t longest_ = 0;
};

// "<0x0A>" -> 10; nullopt for anything else.
std::optional<std::uint8_t> byte_of_piece(std::string_view piece);
// The id of "<0xNN>" for every byte; nullopt where one is missing.
std::vector<std::optional<TokenId>> byte_pieces(const Vocabulary& vocabulary);

struct SpecialTokens {
  std::optional<TokenId> bos, eos, unk, pad;
  std::vector<TokenId> end_of_generation;  // sorted: EOS and what else ends a turn
};
// Puts EOS and the pieces by whose well-known names a model ends its turn into end_of_generation.
void find_end_of_generation(SpecialTokens& special, const Vocabulary& vocabulary);

}  // namespace assay
