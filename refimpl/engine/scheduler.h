// Which tokens of which texts a step computes, and in which blocks their rows go. Texts are counts and keys here: no
// model, no numbers, so that the same code replays a workload of which only lengths and hashes are known.
//
// A step (Sarathi-Serve, arXiv 2403.02310): a token of every text that is being written; then as much of the prompts
// under way as the step's budget of tokens leaves; then new texts, in the policy's order, while their blocks are free.
// Where a text under way gets no block, the one that came last gives its own back and waits in front of all others.
// Nothing depends on time: the same texts in the same order give the same steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "refimpl/engine/block_pool.h"
#include "refimpl/engine/outer_level.h"

namespace assay {

enum class Policy : std::uint8_t { first_come, priority, shortest_first, longest_prefix };
enum class Preemption : std::uint8_t { recompute, swap };

struct SchedulerOptions {
  std::size_t blocks = 0, block_tokens = 16;
  std::size_t tokens_a_step = 512, texts_at_once = 256;
  std::size_t chunk = 512;  // tokens of one prompt in a step
  Policy policy = Policy::first_come;
  Preemption preemption = Preemption::recompute;
  bool prefix_cache = true;
  std::vector<std::size_t> windows = {0};  // of each group of layers (CacheGroup); the first sees everything
  bool has_states = false;  // recurrent layers: a prefix ends where a step ended, and these at whole blocks
};

// A text as the scheduler sees it. Its owner makes it longer; the scheduler moves `cached` and the tables.
struct ServedText {
  enum class Place : std::uint8_t { waiting, running, swapped, over };

  std::size_t number = 0;  // by arrival
  int priority = 0;        // the larger is served first
  bool reads_cache = true;
  std::size_t tokens = 0;                     // known: of the prompt, and made; behind them guesses
  std::size_t guessed = 0;                    // of them
  std::vector<BlockKey> keys;                 // of its root, then of each full block of the known tokens
  const std::vector<TokenId>* ids = nullptr;  // compared on a hit; none: keys are trusted

  Place place = Place::waiting;
  bool preempted = false;
  std::size_t cached = 0;  // of the known tokens
  std::size_t hit = 0;     // of these came from other texts' blocks, when it was admitted last
  std::size_t known = 0;   // full blocks that are registered
  std::vector<std::vector<BlockId>> tables;  // by group; -1: given back, out of the window

  std::size_t pending() const { return tokens - cached; }
  std::size_t sure() const { return tokens - guessed; }
  bool is_written() const { return pending() <= 1 + guessed; }  // else it is being read
};

struct StepPlan {
  struct Feed {
    ServedText* text;
    std::size_t tokens;
  };
  struct Copy {
    std::size_t group;
    BlockId from, to;
  };
  struct Fresh {
    std::size_t group;
    BlockId block;
  };
  struct Load {  // from the outer level
    std::size_t group;
    BlockId block;
    std::vector<double> rows;
    std::shared_ptr<LayeredRows> later = {};  // in place of rows
  };
  struct SwapOut {
    ServedText* text;
    std::vector<std::vector<BlockId>> tables;  // as they were
  };
  struct Admission {
    ServedText* text;
    std::shared_ptr<const SequenceCache::States> states;  // behind its cached tokens
    bool swapped_in;
  };
  // To be done in this order, before the feeds.
  std::vector<SwapOut> swapped_out;
  std::vector<Copy> copies;
  std::vector<Fresh> fresh;  // taken for rows to come
  std::vector<Load> loads;
  std::vector<Admission> admitted;
  std::vector<Feed> feeds;
  std::size_t preemptions = 0;
  bool empty() const { return feeds.empty(); }
  std::vector<LayerArrivals::Block> late() const {  // of the loads those whose rows come later
    std::vector<LayerArrivals::Block> blocks;
    for (const Load& load : loads)
      if (load.later) blocks.push_back({load.group, load.block, load.later});
    return blocks;
  }
};

class Scheduler {
 public:
  // How many of a text's pending tokens a step takes at least, where `wanted` are offered: all, where a part is of no
  // use (rotary frequencies that follow the length).
  using Feeder = std::function<std::size_t(const ServedText&, std::size_t wanted)>;
  using StatesOf = std::function<std::shared_ptr<const SequenceCache::States>(const ServedText&)>;

  using DraftsOf =
      std::function<std::shared_ptr<const std::vector<Matrix>>(const ServedText&, std::size_t end)>;

  using PoolMaker = std::function<std::unique_ptr<BlockPool>(std::size_t blocks)>;

  explicit Scheduler(const SchedulerOptions& options, Feeder feeder = {}, const PoolMaker& make_pool = {});
  virtual ~Scheduler() = default;

  const SchedulerOptions& options() const { return options_; }
  std::vector<std::unique_ptr<BlockPool>>& pools() { return pools_; }  // by group
  void set_outer(OuterLevel* outer) { outer_ = outer; }                // outlives the last plan()
  // What the pools know of and nobody holds goes to the outer level: before an end, after which it may be wanted.
  void keep_all();
  const std::vector<ServedText*>& running() const { return running_; }
  const std::vector<ServedText*>& waiting() const { return waiting_; }

  // Throws Error::input for a text whose tokens no pool could hold, however empty.
  virtual void add(ServedText& text);
  // Likewise; its rows are kept elsewhere, as those of a text that was swapped out.
  void add_swapped(ServedText& text);
  // `text` goes on from where `parent` stands, in the same blocks.
  void fork(const ServedText& parent, ServedText& text);
  StepPlan plan();
  // The step was computed: what it filled may be found by others.
  void complete(const StepPlan& plan, const StatesOf& states = {}, const DraftsOf& drafts = {});
  // The text is over, or its cache of no use any more: it holds nothing.
  void finish(ServedText& text);
  // What the plan's loads should have brought is not there: nobody finds it, and texts that began with it begin anew.
  // Returns how many tokens these had hit.
  std::size_t withdraw_loads(const StepPlan& plan);
  virtual void forget_cache(ServedText& text);

  // The most tokens a text can have here.
  std::size_t capacity() const { return options_.blocks * options_.block_tokens; }

 protected:
  static constexpr BlockId kOutside = -2;  // in a hit's tables: in the outer level
  struct Hit {
    std::size_t blocks = 0;
    std::vector<std::vector<BlockId>> tables;
    std::shared_ptr<const SequenceCache::States> states;
  };
  virtual std::size_t most_hits(const ServedText& text) const;  // in blocks
  virtual Hit longest_hit(const ServedText& text) const;
  virtual void touch(const Hit& hit);
  virtual ServedText* victim(const ServedText& needy) const;
  // The block that the text writes to next is others' too, and partly filled.
  virtual bool is_shared(std::size_t group, const ServedText& text) const;
  // The first block that a token behind `tokens` others still looks at.
  virtual std::size_t first_needed(std::size_t group, std::size_t tokens) const;
  // Its tokens are in the plan now.
  virtual void planned(ServedText& text, std::size_t tokens);
  void wait(ServedText& text);
  void know(ServedText& text, std::size_t block, std::size_t group, const StatesOf& states,
            const DraftsOf& drafts = {});
  const std::vector<const ServedText*>& planned() const { return planned_; }

 private:
  BlockContent content_of(const ServedText& text, std::size_t block) const;
  std::optional<BlockId> find(std::size_t group, const ServedText& text, std::size_t block) const;
  bool fits_window(std::size_t group, const ServedText& text, std::size_t blocks) const;
  BlockId taken(std::size_t group);
  struct Fetched {
    std::size_t group = 0;
    BlockContent content;
    std::vector<double> rows;
    std::shared_ptr<LayeredRows> later = {};
  };
  bool fetch(const ServedText& text, const Hit& hit, std::vector<Fetched>& fetched);
  void load(Hit& hit, std::vector<Fetched>& fetched, StepPlan& plan);

  void feed_running(bool writing, std::size_t& budget, StepPlan& plan);
  void admit(std::size_t& budget, StepPlan& plan);
  bool admit(ServedText& text, std::size_t& budget, StepPlan& plan);
  bool has_room(const ServedText& text, const Hit& hit) const;
  std::size_t tokens_of_feed(const ServedText& text, std::size_t budget) const;
  ServedText* next_waiting() const;
  bool is_before(const ServedText& a, const ServedText& b) const;
  bool cover(ServedText& text, std::size_t tokens, StepPlan& plan);
  bool make_room(ServedText& text, std::size_t tokens, StepPlan& plan);
  void preempt(ServedText& text, StepPlan& plan);
  void release(ServedText& text);

  SchedulerOptions options_;
  Feeder feeder_;
  std::vector<std::unique_ptr<BlockPool>> pools_;
  OuterLevel* outer_ = nullptr;
  std::vector<ServedText*> running_, waiting_;
  std::vector<const ServedText*> planned_;  // of the plan being made
};

}  // namespace assay
