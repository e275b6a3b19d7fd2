// The first and the last part of a hand-off: what was asked, and what must have come of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/block_store/block_bytes.h"
#include "refimpl/handoff/state_cut.h"

namespace assay {

// Who chooses the first token: the prefill, or the decoder from what the output head saw of the prompt's last one.
enum class FirstToken : std::uint8_t { id, hidden };
// What becomes of layers for multi-token prediction, whose rows depend on what the head saw of every token:
//   none       they begin anew behind the prompt: guesses are worse
//   recompute  the decoder reads the prompt through the whole model again: no bytes, all of the prefill's work
//   rows       the prefill runs them, and their rows go as those of one layer more
//   hidden     what the head saw of each token goes, and the decoder runs them
//   inputs     that and each token's embedding, as some engines have it, though the decoder has the tokens
enum class DraftHandoff : std::uint8_t { none, recompute, rows, hidden, inputs };
std::string_view name(FirstToken first);
std::string_view name(DraftHandoff draft);
std::optional<FirstToken> first_token_from(std::string_view name);
std::optional<DraftHandoff> draft_handoff_from(std::string_view name);

struct HandoffTicket {
  std::vector<TokenId> tokens;
  FirstToken first = FirstToken::id;
  DraftHandoff draft = DraftHandoff::none;
  bool text = false;  // the prompt was a text: the answer is to be shown as one
  std::string rules;  // by which the first token was chosen, and the next ones must be
  std::string sums;   // of ranks: how they add, "tree" or "order"; of one process: empty
};
std::string to_text(const HandoffTicket& ticket);
HandoffTicket ticket_from(std::string_view text);  // Throws Error::input.

// A digest of all rows of one head in one layer, from the first that is still looked at to the last, as they lie in the
// cache: what the decoder's blocks are held against, whichever way the rows took.
struct LayerSeal {
  std::vector<BlockKey> keys, values;  // by head
  // By unit of the whole model's states, one state's behind the other's; of what another rank has, no digest but zeros.
  std::vector<BlockKey> states;
  std::uint64_t first_head = 0;  // of the model's, at a rank
  bool operator==(const LayerSeal&) const = default;
};
// `rows`: of all heads, row_numbers each.
std::vector<BlockKey> seal_heads(std::span<const double> rows, std::size_t row_numbers, std::uint64_t heads);
// Behind `seals`, of one state of which `cut.here` lies here.
void seal_units(const StateCut& cut, std::span<const double> state, std::vector<BlockKey>& seals);
// What several ranks sealed, put together: of each layer all heads. Throws Error::input where two sealed a head, and not the
// same, or nobody did.
std::vector<LayerSeal> merged_seals(const std::vector<std::vector<LayerSeal>>& of_ranks);
// "layer 3: keys of head 1"; empty: none differs. `found` may be of some of the heads only.
std::string first_difference(const std::vector<LayerSeal>& wanted, const std::vector<LayerSeal>& found);

struct HandoffEnd {
  std::uint64_t parts = 0;  // of the whole stream, this one included
  std::optional<TokenId> first;
  std::vector<LayerSeal> seals;
};
std::string to_text(const HandoffEnd& end);
HandoffEnd end_from(std::string_view text);  // Throws Error::input.

}  // namespace assay
