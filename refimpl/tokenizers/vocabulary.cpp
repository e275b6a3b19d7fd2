#include "refimpl/tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 16> kTurnEnds = {"<|eot_id|>",
                                                        "<|eom_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<end_of_turn>",
                                                        "<turn|>",
                                                        "<|endoftext|>",
                                                        "<|end_of_text|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|eot|>",
                                                        "<｜end▁of▁sentence｜>",
                                                        "<|END_OF_TURN_TOKEN|>",
                                                        "<end_of_utterance>",
                                                        "[EOS]",
                                                        "[EOT]"};

void check_id(TokenId id) {
  if (id >= kMostPieces) {
    throw Error::input(
        fmt::format("token id {} is beyond the {} pieces a vocabulary may have", id, kMostPieces));
  }
}

}  // namespace

void Vocabulary::set(TokenId id, std::string_view text, PieceKind kind) {
  check_id(id);
  put({id, 0}, text, kind);
}

void Vocabulary::add(TokenId id, std::string_view text, PieceKind kind) {
  check_id(id);
  put({id, 1}, text, kind);
}

void Vocabulary::put(Named named, std::string_view text, PieceKind kind) {
  const TokenId id = named.id;
  if (id >= pieces_.size()) {
    pieces_.resize(id + 1);
    kinds_.resize(id + 1, PieceKind::absent);
  }
  pieces_[id] = text;
  kinds_[id] = kind;
  longest_ = std::max(longest_, text.size());
  ids_.add(text, named);
}

const std::string& Vocabulary::at(TokenId id) const {
  if (kind(id) != PieceKind::absent) return pieces_[id];
  throw Error::input(fmt::format("there is no token {}: the vocabulary has {}", id, size()))
      .remedy("check that model and tokenizer belong together");
}

std::optional<std::uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  std::uint8_t value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc{} || end != piece.data() + 5) return std::nullopt;
  return value;
}

std::vector<std::optional<TokenId>> byte_pieces(const Vocabulary& vocabulary) {
  std::vector<std::optional<TokenId>> ids(256);
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    ids[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  }
  return ids;
}

void find_end_of_generation(SpecialTokens& special, const Vocabulary& vocabulary) {
  auto& ends = special.end_of_generation;
  if (special.eos) ends.push_back(*special.eos);
  for (const std::string_view name : kTurnEnds) {
    const auto id = vocabulary.find(name);
    const bool special_piece = id && vocabulary.kind(*id) != PieceKind::normal;
    if (special_piece) ends.push_back(*id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

}  // namespace assay
