// What a prefill hands to a decoder, part by part: rows of one layer's cache for a run of tokens, states, hidden states, and
// at either end what was asked and what came of it. A part says of itself all that its numbers depend on, so that one that
// belongs elsewhere is refused, not computed with.
//
//   header   "assay hand-off 2"; identity: SHA-256 of weights, precision, kernels, forms; text: the chain key of all
//            tokens of the prompt (block_key.h); the hand-off's own number, drawn at random
//            serial in its stream, kind, layer, which matrix of the layer, first row, rows
//            heads: which of how many; of a state its channels or rows (state_cut.h); columns of a row, bytes of a number
//   numbers  row-major, as wide as the cache's precision needs: bf16 rows travel in 2 bytes
//   SHA-256  of all before
//
// Rows of a layer may come in several parts: cut between tokens anywhere, and between heads, as ranks of a tensor-parallel
// prefill hold them; a head that several ranks replicate may come from each of them. The blocks of disk_level.h serve no
// hand-off: they hold all layers of a group, so that none could go before the last is computed, whole blocks only, and all
// heads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refimpl/block_store/block_bytes.h"

namespace assay {

enum class PartKind : std::uint8_t {
  ticket,     // the first: what was asked (handoff_ticket.h)
  keys,       // or latents
  values,     // of latent attention with an indexer: its keys
  state,      // of a recurrent layer, behind `first` tokens, or some of its heads'
  hidden,     // what the output head saw of each token
  embedding,  // of each token
  draft,      // rows of prediction layers; matrix 0: keys, 1: values, 2: hidden states still to be read
  end         // the last: how many parts there are, what the caches must hold
};
std::string_view name(PartKind kind);

struct HeadRange {
  std::uint64_t first = 0, count = 1, of = 1;
  bool operator==(const HeadRange&) const = default;
};
// Heads of a rank: as many as there are dealt out evenly; where ranks are more than heads, each has one, which its neighbours
// have too. Throws Error::usage where they do not come out even.
HeadRange heads_of_rank(std::uint64_t heads, std::uint64_t ranks, std::uint64_t rank);

using HandoffNumber = std::array<std::uint8_t, 16>;

struct PartHeader {
  BlockKey identity, text;
  HandoffNumber handoff = {};
  std::uint64_t serial = 0;
  PartKind kind = PartKind::ticket;
  std::uint64_t layer = 0, matrix = 0;
  std::uint64_t first = 0, rows = 0;
  HeadRange heads;
  std::uint64_t columns = 0;       // numbers of a row that are here
  std::uint64_t number_bytes = 1;  // 1: text

  bool operator==(const PartHeader&) const = default;
};

struct HandoffPart {
  PartHeader header;
  std::vector<std::byte> bytes;  // rows × columns × number_bytes
};

inline constexpr std::size_t kPartHeaderBytes = 16 + 2 * 32 + 16 + 11 * 8;
inline constexpr std::uint64_t kMostPartBytes = std::uint64_t{1} << 30;

std::vector<std::byte> pack(const HandoffPart& part);
// Throws Error::input for what is cut, damaged, or no such part.
HandoffPart unpack(std::span<const std::byte> bytes);

HandoffPart part_of_text(PartHeader header, std::string_view text);
HandoffPart part_of_numbers(PartHeader header, std::span<const double> numbers, NumberWidth width);
std::vector<double> numbers_of(const HandoffPart& part);

std::optional<HeadRange> heads_of_both(const HeadRange& a, const HeadRange& b);  // none: they share none

// Of rows of `heads.of` heads those numbers that belong to some. A head's numbers are on end in a row.
std::vector<double> take_heads(std::span<const double> rows, std::size_t row_numbers, const HeadRange& heads);

}  // namespace assay
