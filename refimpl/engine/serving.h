// The engine that serves: requests come and go while others are computed, their caches lie in blocks of one pool, and a
// prompt that begins as another did reads that one's blocks. What it says is what TextEngine says of each request by
// itself: bit for bit under kernels whose rows are independent (KernelSet::exact).
//
//   ServingEngine engine(model, ops, {.cache = {.blocks = 4096, .block_tokens = 16}});
//   const std::size_t number = engine.submit({.text = {.prompt = ids}});
//   while (engine.step()) {}
//   engine.result(number).ids
//
// A request goes: submit → Scheduler (waits, is admitted, may be preempted) → step (its tokens in a Batch) → sample → …
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/handed_text.h"
#include "refimpl/engine/scheduler.h"
#include "refimpl/sampling/sequence_sampler.h"
#include "refimpl/speculation/drafter.h"
#include "refimpl/step/block_storage.h"

namespace assay {

struct ServingRequest {
  GenerationRequest text;
  std::size_t samples =
      1;  // texts made of the one prompt, whose blocks they share; each with random numbers of its own
  int priority = 0;
  std::string salt;            // texts with another one share no blocks with it
  bool prompt_logits = false;  // of every position of the prompt: which then reads no other text's blocks
};

// Guesses ahead of each text, computed beside its newest token and checked. Of models with recurrent layers chains of at
// most 7: a tree's first way is taken.
struct SpeculationOptions {
  std::shared_ptr<const DraftSource> source;  // none: nobody guesses
  TreeShape shape;
  std::shared_ptr<const AcceptanceRule> rule = std::make_shared<SampleAndMatch>();
};

struct ServingOptions {
  SchedulerOptions cache;  // windows and has_states are the model's
  std::string
      identity;  // of all that the numbers in a block depend on beside tokens: weights, precision, kernels
  SpeculationOptions speculation = {};
  std::shared_ptr<const CacheMethod> method = {};  // one that rounds_single_rows(); none: in full
  // Blocks hold the codes of INT8, which is what `method` rounds rows to, and need a quarter of the memory. Not with blocks
  // that go elsewhere (ServingParts::outer).
  bool coded_blocks = false;
  bool poison = false;  // NaN in blocks that hold nothing yet
};

// Where a row of a text lies in a step's batch.
struct RowPlace {
  std::size_t first = 0, begin = 0;  // the text's first row in the batch, and that row's place in the text
  std::size_t position = 0;          // the row's own
  std::size_t guesses_before = 0;    // rows of other texts' guesses in the batch before it
};
// A token was chosen: does its text go on?
struct TextEnd {
  bool stops = false;                                     // it ends the text
  std::size_t made = 0, most = 0, tokens = 0, limit = 0;  // as of reason_to_end()
  std::size_t rows_left = 0;  // it was guessed: so many rows of this step follow that may count
};

// Each of a request's texts draws numbers of its own.
SequenceSampler sampler_of(const ServingRequest& request, std::size_t sample);

// What an engine is made of: a fault is planted by giving it another part.
struct ServingParts {
  std::function<std::unique_ptr<BlockHasher>()> hasher = [] { return std::make_unique<BlockHasher>(); };
  std::function<std::unique_ptr<Scheduler>(const SchedulerOptions&, Scheduler::Feeder)> scheduler =
      [](const SchedulerOptions& options, Scheduler::Feeder feeder) {
        return std::make_unique<Scheduler>(options, std::move(feeder));
      };
  // How a text's tokens are chosen.
  std::function<SequenceSampler(const ServingRequest&, std::size_t sample)> sampler = sampler_of;
  // A text that was preempted is computed again: what becomes of its sampler? It goes on.
  std::function<void(SequenceSampler&, const ServingRequest&, std::span<const TokenId> ids)> recomputed = {};
  // Where blocks go that the pool evicts, and come back from; none: they are forgotten.
  std::function<std::unique_ptr<OuterLevel>(Ops&, const BlockStorage&)> outer = {};
  // Is told of each step that read some of them layer by layer.
  std::function<void(const std::vector<LayerArrival>&)> arrived = {};
  std::function<std::unique_ptr<Draws>(const DrawKey&)> draws = [](const DrawKey& key) {
    return std::make_unique<KeyedDraws>(key);
  };
  std::function<std::size_t(const RowPlace&)> prompt_row = [](const RowPlace& place) {
    return place.first + place.position - place.begin;
  };
  // The guesses that a guess of a tree sees, itself the last.
  std::function<std::vector<std::size_t>(const GuessTree&, std::size_t guess)> seen_by =
      [](const GuessTree& tree, std::size_t guess) { return tree.way_to(guess); };
  std::function<std::optional<FinishReason>(const TextEnd&)> end = [](const TextEnd& text) {
    return reason_to_end(text.stops, text.made, text.most, text.tokens, text.limit);
  };
};

struct ServingCounts {
  std::size_t steps = 0, tokens = 0, prompt_tokens = 0, hit_tokens = 0, preemptions = 0, most_texts = 0;
  std::size_t loaded_blocks = 0;          // from the outer level, of all groups
  std::size_t guessed = 0, accepted = 0;  // rows of guesses; those that were right
  // Of steps in which a text had guesses, by depth in the tree: were any tried there, was one right?
  std::vector<std::size_t> tried, right;
  std::size_t guessing_steps = 0, guessing_tokens = 0, draft_rows = 0;
  double draft_seconds = 0, target_seconds = 0;
};

class ServingEngine {
 public:
  // A token was chosen from these logits.
  using Listener = std::function<void(std::size_t request, std::size_t sample, TokenId id,
                                      std::span<const double> logits)>;
  using PromptListener =
      std::function<void(std::size_t request, std::size_t position, std::span<const double> logits)>;

  ServingEngine(const LanguageModel& model, Ops& ops, const ServingOptions& options,
                const ServingParts& parts = {});
  ~ServingEngine();

  // A text is over. `failure`: its next token could not be chosen, for a constraint, its biases or its logits leave none;
  // where nobody listens that is thrown by step(), else it ends this one text as interrupted, and others go on.
  using EndListener =
      std::function<void(std::size_t request, std::size_t sample, FinishReason reason, const Error* failure)>;

  void listen(Listener listener, PromptListener prompt = {}) {
    listener_ = std::move(listener);
    prompt_listener_ = std::move(prompt);
  }
  void listen_to_ends(EndListener listener) { end_listener_ = std::move(listener); }
  // Is told each step before it is computed.
  void watch_plans(std::function<void(const StepPlan&)> watcher) { plan_watcher_ = std::move(watcher); }

  // Throws Error::input for a request that can never be served; what is under way goes on.
  std::size_t submit(const ServingRequest& request);
  // Likewise, of a prompt that was read elsewhere: it goes on from there. Throws Error::usage where several samples, or logits
  // of the prompt, are asked for.
  std::size_t take_over(const ServingRequest& request, HandedText handed);
  void cancel(std::size_t request);
  void cancel_all() {
    for (const auto& [number, texts] : requests_) cancel(number);
  }
  // Computes one step. False: nothing is left to do.
  bool step();
  // Of a request that is over; others' are what was made so far.
  const Generation& result(std::size_t request, std::size_t sample = 0) const;
  // Of a request that is over and whose result was taken nothing is kept, its number included.
  void forget(std::size_t request);

  // What is known of finished texts goes to the outer level.
  void keep_all() {
    scheduler_->keep_all();
    if (outer_) outer_->finish();
  }

  Scheduler& scheduler() { return *scheduler_; }
  const BlockStorage& storage() const { return storage_; }
  const ServingCounts& counts() const { return counts_; }

 private:
  struct Served;
  struct Branch;
  struct Row;
  Served& create(const ServingRequest& request, std::size_t number, std::size_t sample);
  template <class Enter>
  Served& enter(const ServingRequest& request, const Enter& enter);
  void begin(Served& served, const HandedText& handed);
  void grow_keys(Served& served) const;
  std::string regime(std::size_t tokens) const;
  void carry_out(const StepPlan& plan);
  void resume_drafter(Served& served) const;
  Matrix compute(const StepPlan& plan);
  Matrix hidden_of(const Batch& batch, const StepPlan& plan);
  SequenceCache& branch(Served& served, std::size_t guess);
  void guess();
  void guess(Served& served);
  TreeShape shape_for(const Served& served) const;
  void forget_guesses();
  std::vector<Row> rows_of(const StepPlan& plan) const;
  void deliver(const Matrix& hidden, const std::vector<Row>& rows);
  void deliver(const Row& row, std::span<const double> logits);
  void choose(Served& served, std::span<const double> logits, std::size_t behind = 0);
  bool push(Served& served, TokenId id, std::span<const double> logits);
  void try_to_choose(Served& served, std::span<const double> logits, std::size_t behind = 0);
  void keep_right(Served& served, StepPlan::Feed& feed, const Matrix& hidden);
  void settle(StepPlan plan, const Matrix& hidden);
  void fork(Served& parent);
  void finish(Served& served, FinishReason reason);

  const LanguageModel& model_;
  Ops& ops_;
  ServingOptions options_;
  ServingParts parts_;
  std::unique_ptr<BlockHasher> hasher_;
  std::unique_ptr<Scheduler> scheduler_;
  BlockStorage storage_;
  std::unique_ptr<OuterLevel> outer_;
  Listener listener_;
  PromptListener prompt_listener_;
  EndListener end_listener_;
  std::function<void(const StepPlan&)> plan_watcher_;
  std::map<std::size_t, std::vector<std::unique_ptr<Served>>> requests_;  // by number, then by sample
  std::size_t next_request_ = 0;
  std::map<const ServedText*, Served*> of_text_;
  std::size_t arrivals_ = 0;
  ServingCounts counts_;
};

}  // namespace assay
