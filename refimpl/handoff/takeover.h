// The decoder's half of a hand-off: takes the parts, each only if it is what it must be, and makes of them a text that the
// engine goes on from.
//
//   Takeover taken(with, source);              // the ticket; of several ranks: with, {&source, &other}
//   taken.read();                              // all the rest
//   engine.watch_plans([&](const StepPlan& plan) { taken.check(engine.storage(), plan); });
//   engine.take_over(request, taken.text(block_tokens));
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "refimpl/engine/handed_text.h"
#include "refimpl/handoff/prefill.h"
#include "refimpl/handoff/row_assembly.h"
#include "refimpl/handoff/state_assembly.h"

namespace assay {

class Takeover {
 public:
  // Waits for the ticket. Throws Error::input for parts that are cut, damaged, out of order, or of another model, precision,
  // kernels or text; Error::io where the prefill is gone. The source is told why.
  Takeover(const HandoffModel& with, PartSource& source, const HandoffMade& made = {});
  // From as many ranks of a prefill, each with layers and heads of its own.
  Takeover(const HandoffModel& with, std::vector<PartSource*> sources, const HandoffMade& made = {});

  const HandoffTicket& ticket() const { return ticket_; }
  // Throws Error::input where the first token was chosen by other rules.
  void require_rules(const std::string& rules);
  // Where both sides are ranks, that they add alike. Throws Error::input.
  void require_sums(const std::string& sums);
  // Until the last part. Throws as above, and where something is missing.
  void read(std::size_t block_tokens);
  HandedText text(std::size_t block_tokens);
  // The decoder's blocks hold, head by head, what the prefill's cache held. Throws Error::input. To be asked of each step,
  // before it is computed: it looks at the one that writes them.
  void check(const BlockStorage& storage, const StepPlan& plan);
  bool checked() const { return checked_; }

  // All senders are told why, side by side: the time that the last of them takes is all that it takes.
  void refuse(const std::string& why);

  std::uint64_t parts() const;
  std::uint64_t bytes() const;

 private:
  // What comes from one sender.
  struct Stream {
    PartSource* source = nullptr;
    PartHeader common = {};
    std::uint64_t serial = 0, bytes = 0;
    HandoffEnd end = {};
  };
  HandoffPart next(Stream& stream) const;
  HandoffTicket begin(Stream& stream) const;
  void read(Stream& stream, std::size_t block_tokens);
  void join_ends();
  void take(const HandoffPart& part, std::size_t block_tokens);
  void take_rows(const HandoffPart& part, std::size_t block_tokens);
  void take_state(const HandoffPart& part);
  void take_wide(std::optional<RowAssembly>& rows, const HandoffPart& part, std::size_t block_tokens);
  void take_draft(const HandoffPart& part);
  void require_all() const;
  void put_states();
  std::vector<double> block_of(const CacheGroup& group, std::size_t first, std::size_t block_tokens);
  std::function<void(Drafter&, std::span<const TokenId>)> teacher();
  Matrix hidden_rows(std::size_t first);
  Matrix hidden_anew() const;
  template <class Work>
  void told(const Work& work);
  template <class Work>
  void side_by_side(const Work& work);

  const HandoffModel& with_;
  const HandoffMade made_;
  std::vector<Stream> streams_;
  HandoffTicket ticket_;
  std::size_t tokens_ = 0;
  std::mutex mutex_;  // of all that parts are put into
  struct Layer {
    RowAssembly keys, values;
    std::vector<StateAssembly> states;
  };
  std::vector<Layer> layers_;
  SequenceCache::States states_;  // of all layers, when all is here
  std::optional<RowAssembly> hidden_, embedding_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Matrix> drafts_;  // by layer and matrix
  HandoffEnd end_;                                                    // of all streams
  bool checked_ = false;
};

}  // namespace assay
