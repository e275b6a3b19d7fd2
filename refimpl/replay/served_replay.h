// A recorded workload through the engine itself, with a model: lengths divided by a factor, so that they fit one that is
// small. Prompts of equal blocks are of equal tokens, answers are those that were drawn up before; so the scheduler alone,
// on the same scaled workload, has to count the same.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "refimpl/block_store/disk_level.h"
#include "refimpl/block_store/scratch_folder.h"
#include "refimpl/engine/serving.h"
#include "refimpl/replay/simulate.h"

namespace assay {

struct ScaledTrace {
  Trace trace;
  std::vector<std::vector<TokenId>> texts;  // of each request: prompt and answer
};
// Throws Error::usage where the factor does not divide the trace's blocks.
ScaledTrace scale_trace(const Trace& trace, std::size_t factor, std::size_t vocabulary);
// Blocks, budget and chunk by the same factor; a token takes as many times longer.
SimulationOptions scale_options(SimulationOptions options, std::size_t factor);

class EngineServer : public TextServer {
 public:
  // Throws Error::usage for a model whose rotary frequencies follow the length. `disk_blocks` of the first group: of a
  // second level of the pool on disk; 0: there is none.
  EngineServer(const LanguageModel& model, Ops& ops, const ScaledTrace& scaled,
               const SchedulerOptions& options, std::size_t disk_blocks);

  Scheduler& scheduler() override { return engine_->scheduler(); }
  void add(std::size_t index) override;
  void step(const std::function<void(const StepPlan&)>& planned) override;
  std::size_t index_of(const ServedText& text) const override { return indices_.at(text.number); }

  // What the scheduler alone needs to count the same.
  SimulationOptions as_counted(SimulationOptions options) const;

 private:
  const ScaledTrace& scaled_;
  std::optional<ScratchFolder> folder_;
  BlockSizes sizes_;
  std::uint64_t disk_bytes_ = 0;
  std::unique_ptr<ServingEngine> engine_;
  std::vector<std::size_t> indices_;  // by arrival
};

// All that does not depend on the clock's numbers.
bool same_counts(const SimulationCounts& a, const SimulationCounts& b);

}  // namespace assay
