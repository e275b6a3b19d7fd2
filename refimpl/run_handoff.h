// `assay run --handoff-to` and `--handoff-from`: one process reads the prompt, another writes the text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/system/json.h"
#include "refimpl/engine/serving.h"
#include "refimpl/handoff/prefill.h"
#include "refimpl/handoff/takeover.h"
#include "refimpl/run_model.h"

namespace assay {

void add_handoff_options(CLI::App& command, HandoffSettings& settings);
// Throws Error::usage for options without --handoff-to or --handoff-from, and those that exclude one another.
void check_handoff_options(const RunSettings& settings);

// What the numbers of a hand-off depend on; of the whole model.
HandoffModel handoff_model(const OpenModel& open, const RunSettings& settings);
// `with`: the whole model, or what a rank has of it.
HandoffSent send_handoff(const HandoffModel& with, const HandoffModel& whole, const RunSettings& settings,
                         const GenerationRequest& request);
Json to_json(const HandoffSent& sent, std::size_t tokens);
std::string handoff_lines(const HandoffSent& sent, std::size_t tokens);

// The decoder's side: made, it has the ticket.
class RunTakeover {
 public:
  // `note`: is told where it listens.
  RunTakeover(HandoffModel with, const RunSettings& settings,
              const std::function<void(const std::string&)>& note);

  const HandoffTicket& ticket() const { return taken_->ticket(); }
  struct Text {
    Generation made;
    ServingCounts counts;
    double seconds = 0;
  };
  // The text, which `show` is told of token by token; of the first, where its id came, there are no logits.
  Text write(const GenerationRequest& request, const SpeculationOptions& speculation,
             const std::function<void(TokenId, std::span<const double>)>& show);
  Json to_json() const;

 private:
  const RunSettings& settings_;
  HandoffMade made_;
  HandoffModel with_;
  std::vector<std::unique_ptr<PartSource>> sources_;
  std::unique_ptr<Takeover> taken_;
};

}  // namespace assay
