// The prefill's half of a hand-off: reads a prompt, and sends what its cache holds, layer by layer while later ones are
// computed, or all of it at the end.
//
//   PartQueue queue;
//   const HandoffSent sent = hand_over({model, ops, shape, identity}, request, {.by_layer = true}, queue);
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "refimpl/engine/serving.h"
#include "refimpl/handoff/cache_shape.h"
#include "refimpl/handoff/handoff_part.h"
#include "refimpl/handoff/handoff_ticket.h"
#include "refimpl/handoff/handoff_timeline.h"
#include "refimpl/handoff/part_stream.h"

namespace assay {

// What both sides know before: a model, and what the numbers in its cache depend on beside tokens.
struct HandoffModel {
  const LanguageModel& model;
  Ops& ops;
  CacheShape shape;
  BlockKey identity;
};
BlockKey handoff_identity(std::string_view of_run);  // run_identity()

struct HandoffOptions {
  bool by_layer = true;
  FirstToken first = FirstToken::id;
  DraftHandoff draft = DraftHandoff::none;
  std::size_t chunk = 512;    // tokens of the prompt that are read, and sent, at once
  std::uint64_t senders = 1;  // heads go as this many ranks of a tensor-parallel prefill would send them
  bool text = false;
  std::string rules, sums;
};

// Where faults are planted (claims/handoff_faults.h).
struct HandoffMade {
  using Numbers = std::shared_ptr<std::vector<double>>;
  // Numbers that were copied out of the cache, until they are sent.
  std::function<Numbers(std::vector<double>)> stage = [](std::vector<double> numbers) {
    return std::make_shared<std::vector<double>>(std::move(numbers));
  };
  std::function<HeadRange(std::uint64_t heads, std::uint64_t ranks, std::uint64_t rank)> deal = heads_of_rank;
  // What a cache of the decoder is cut of: rows on end, as they came.
  std::function<void(std::vector<double>& rows, std::size_t row_numbers, std::uint64_t heads)> arrived = {};
  // The first row of a part, as the decoder places it.
  std::function<std::uint64_t(const PartHeader&, std::size_t block_tokens)> place =
      [](const PartHeader& header, std::size_t) { return header.first; };
  std::function<std::uint64_t(std::uint64_t layer)> layer_of = [](std::uint64_t layer) { return layer; };
  bool hands_drafts = true, looks_at_seals = true;
};

struct HandoffSent {
  HandoffTimeline timeline;
  std::optional<TokenId> first;
  std::uint64_t parts = 0, bytes = 0;  // all that went
  // Of these, numbers alone, by kind.
  std::uint64_t row_bytes = 0, state_bytes = 0, hidden_bytes = 0, draft_bytes = 0;
  double prefill_seconds = 0, seconds = 0;
};

// Who is sent something, and what it keeps of the model's cache; without a shape, all of it.
struct HandoffTaker {
  PartSink* sink = nullptr;
  std::optional<CacheShape> shape = {};
};

// Throws what the sink throws, and Error::input for a prompt that the model cannot read. At a rank (CacheShape::rank) what the
// rank has goes to its own sink; every rank calls it.
HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, PartSink& sink, const HandoffMade& made = {});
// To the ranks of a decoder, each of which is sent what it keeps.
HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, const std::vector<HandoffTaker>& takers,
                      const HandoffMade& made = {});

}  // namespace assay
