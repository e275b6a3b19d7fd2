#include "refimpl/claims/faults.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace assay {
namespace {

// What a hit is, where only its key is looked at.
class Believing : public BlockPool {
 public:
  using BlockPool::BlockPool;
  std::optional<BlockId> find(const BlockKey& key, const BlockKey&, std::span<const TokenId>) const override {
    return BlockPool::find(key);
  }
};

class EightBits : public BlockHasher {
 public:
  BlockKey next(const BlockKey& parent, std::span<const TokenId> tokens) const override {
    BlockKey key;
    key.bytes[0] = BlockHasher::next(parent, tokens).bytes[0];
    return key;
  }
};

class Polynomial : public BlockHasher {
 public:
  BlockKey next(const BlockKey& parent, std::span<const TokenId> tokens) const override {
    std::uint64_t sum = 0;
    std::memcpy(&sum, parent.bytes.data(), sizeof sum);
    for (const TokenId id : tokens) sum = sum * 31 + id;
    BlockKey key;
    std::memcpy(key.bytes.data(), &sum, sizeof sum);
    return key;
  }
};

class WithoutParent : public BlockHasher {
 public:
  BlockKey next(const BlockKey&, std::span<const TokenId> tokens) const override {
    return BlockHasher::next({}, tokens);
  }
};

class WithoutSalt : public BlockHasher {
 public:
  BlockKey root(std::string_view identity) const override {
    const auto first = identity.find('\n'), last = identity.rfind('\n');
    return BlockHasher::root(std::string(identity.substr(0, first)) + std::string(identity.substr(last)));
  }
};

class WithoutWeights : public BlockHasher {
 public:
  BlockKey root(std::string_view identity) const override {
    return BlockHasher::root(identity.substr(identity.find('\n')));
  }
};

// Keys of the second level begin with nothing, where the pool's begin with a salt.
class SaltLostOutside : public OuterLevel {
 public:
  explicit SaltLostOutside(std::unique_ptr<OuterLevel> inner) : inner_(std::move(inner)) {}
  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override {
    return inner_->has(group, renamed(wanted), with_states);
  }
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override {
    return inner_->fetch(group, renamed(wanted), with_states);
  }
  void keep(std::size_t group, BlockId block, const BlockContent& content) override {
    inner_->keep(group, block, renamed(content));
  }

 private:
  BlockContent renamed(BlockContent content) const {
    const auto parent = names_.find(content.parent);
    if (content.number > 0 && parent == names_.end())
      return content;  // what stands before it never came here
    const BlockKey key = std::exchange(content.key, {});
    content.parent = content.number == 0 ? BlockKey() : parent->second;
    content.key = names_[key] = BlockHasher().next(content.parent, content.tokens);
    return content;
  }
  std::unique_ptr<OuterLevel> inner_;
  mutable std::unordered_map<BlockKey, BlockKey, BlockKeyHash> names_;
};

class WholePrompt : public Scheduler {
 public:
  using Scheduler::Scheduler;
  std::size_t most_hits(const ServedText& text) const override {
    return options().prefix_cache && text.reads_cache ? text.tokens / options().block_tokens : 0;
  }
};

class ReadsForLogits : public Scheduler {
 public:
  using Scheduler::Scheduler;
  std::size_t most_hits(const ServedText& text) const override {
    return options().prefix_cache ? (text.tokens - 1) / options().block_tokens : 0;
  }
};

// The block that a step ends in is known as if it were full.
class KnownTooEarly : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void planned(ServedText& text, std::size_t tokens) override {
    Scheduler::planned(text, tokens);
    const std::size_t block = (text.cached + tokens) / options().block_tokens;
    if (!options().prefix_cache || block + 1 >= text.keys.size() || block >= text.tables[0].size()) return;
    for (std::size_t g = 0; g < options().windows.size(); ++g) know(text, block, g, {});
  }
};

class FreesDuplicates : public BlockPool {
 public:
  using BlockPool::BlockPool;
  void know(BlockId block, BlockContent content) override {
    const std::optional<BlockId> same = BlockPool::find(content.key);
    BlockPool::know(block, std::move(content));
    if (same && *same != block && holders(block) == 1) release(block);
  }
};

class CountsTwice : public BlockPool {
 public:
  using BlockPool::BlockPool;
  std::size_t free_blocks() const override {
    std::size_t known = 0;
    for (const BlockId block : queue()) known += content(block) != nullptr ? 1 : 0;
    return BlockPool::free_blocks() + known;
  }
};

class HoldsTwice : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void touch(const Hit& hit) override {
    Scheduler::touch(hit);
    if (hit.blocks > 0) pools()[0]->hold(hit.tables[0].back());
  }
};

class NeverForgets : public BlockPool {
 public:
  using BlockPool::BlockPool;
  void know(BlockId block, BlockContent content) override {
    ever_[content.key] = block;
    BlockPool::know(block, std::move(content));
  }
  std::optional<BlockId> find(const BlockKey& key, const BlockKey&, std::span<const TokenId>) const override {
    const auto found = ever_.find(key);
    if (found == ever_.end() || content(found->second) == nullptr) return std::nullopt;
    return found->second;
  }

 private:
  std::unordered_map<BlockKey, BlockId, BlockKeyHash> ever_;
};

class LosesOne : public BlockPool {
 public:
  using BlockPool::BlockPool;
  void release_all(std::span<const BlockId> blocks) override {
    BlockPool::release_all(blocks.empty() ? blocks : blocks.first(blocks.size() - 1));
  }
};

class ShortWindow : public Scheduler {
 public:
  using Scheduler::Scheduler;
  std::size_t first_needed(std::size_t group, std::size_t tokens) const override {
    const std::size_t first = Scheduler::first_needed(group, tokens);
    return first == 0 ? 0 : first + 1;
  }
};

class OneWindow : public Scheduler {
 public:
  using Scheduler::Scheduler;
  std::size_t first_needed(std::size_t, std::size_t tokens) const override {
    return Scheduler::first_needed(options().windows.size() - 1, tokens);
  }
};

// The blocks that a preempted text gave back are taken for its own when it comes again.
class BelievesItsOldBlocks : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void forget_cache(ServedText& text) override {
    if (text.cached >= options().block_tokens) old_[&text] = text.tables;
    Scheduler::forget_cache(text);
  }
  Hit longest_hit(const ServedText& text) const override {
    const auto old = old_.find(&text);
    if (old == old_.end() || !text.preempted || most_hits(text) == 0) return Scheduler::longest_hit(text);
    Hit hit{1, {}, {}};
    for (const auto& table : old->second) hit.tables.push_back({table.front()});
    return hit;
  }

 private:
  std::map<const ServedText*, std::vector<std::vector<BlockId>>> old_;
};

// A hit asks for the block behind it, too, which nobody keeps.
class AsksForOneMore : public Scheduler {
 public:
  using Scheduler::Scheduler;
  Hit longest_hit(const ServedText& text) const override {
    Hit hit = Scheduler::longest_hit(text);
    return hit.blocks == most_hits(text) ? Hit{} : hit;
  }
};

// A text that gave up its blocks forgets its newest token, and says it again.
class LosesAnOutput : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void forget_cache(ServedText& text) override {
    if (text.cached > 0 && text.is_written()) --text.tokens;
    Scheduler::forget_cache(text);
  }
};

class TakesFromTheFirst : public Scheduler {
 public:
  using Scheduler::Scheduler;
  ServedText* victim(const ServedText& needy) const override {
    for (ServedText* text : running()) {
      if (text != &needy) return text;  // even one whose tokens are in the plan
    }
    return nullptr;
  }
};

class TakesAll : public Scheduler {
 public:
  using Scheduler::Scheduler;
  void add(ServedText& text) override { wait(text); }
};

class WritesToShared : public Scheduler {
 public:
  using Scheduler::Scheduler;
  bool is_shared(std::size_t, const ServedText&) const override { return false; }
};

template <class Hasher>
ServingParts hashed_by() {
  ServingParts parts;
  parts.hasher = [] { return std::make_unique<Hasher>(); };
  parts.scheduler = [](const SchedulerOptions& options, Scheduler::Feeder feeder) {
    return std::make_unique<Scheduler>(options, std::move(feeder), [](std::size_t blocks) {
      return std::unique_ptr<BlockPool>(std::make_unique<Believing>(blocks));
    });
  };
  return parts;
}

template <class Pool>
ServingParts pooled_by() {
  ServingParts parts;
  parts.scheduler = [](const SchedulerOptions& options, Scheduler::Feeder feeder) {
    return std::make_unique<Scheduler>(options, std::move(feeder), [](std::size_t blocks) {
      return std::unique_ptr<BlockPool>(std::make_unique<Pool>(blocks));
    });
  };
  return parts;
}

template <class Own>
ServingParts scheduled_by() {
  ServingParts parts;
  parts.scheduler = [](const SchedulerOptions& options, Scheduler::Feeder feeder) {
    return std::unique_ptr<Scheduler>(std::make_unique<Own>(options, std::move(feeder)));
  };
  return parts;
}

ServingParts outputs_become_prompt() {
  ServingParts parts;
  parts.recomputed = [](SequenceSampler& sampler, const ServingRequest& request,
                        std::span<const TokenId> ids) {
    sampler = SequenceSampler(sampler.params(), ids,
                              request.text.constraint ? request.text.constraint->fork() : nullptr);
  };
  return parts;
}

ServingParts sampled_with(const std::function<void(SamplingParams&)>& change) {
  ServingParts parts;
  parts.sampler = [change](const ServingRequest& request, std::size_t sample) {
    ServingRequest changed = request;
    change(changed.text.sampling);
    return sampler_of(changed, sample);
  };
  return parts;
}

// Of two that come one after the other, the seed of one counts for both.
ServingParts seed_of_the_neighbour() {
  return sampled_with([unseeded = false](SamplingParams& params) mutable {
    if (std::exchange(unseeded, params.seed == 0)) params.seed = 0;
  });
}

// One generator for all, that goes on where the last request left it.
ServingParts seed_goes_on() {
  return sampled_with(
      [requests = std::uint64_t{0}](SamplingParams& params) mutable { params.seed += requests++; });
}

OuterAround loses_salts() {
  return
      [](std::unique_ptr<OuterLevel> inner) { return std::make_unique<SaltLostOutside>(std::move(inner)); };
}

// The workload's requests, where outputs count for much: their penalties are large.
std::vector<ServingRequest> penalized(const ServingWorkload& workload) {
  std::vector<ServingRequest> requests;
  for (const AloneRequest& alone : workload.requests()) {
    ServingRequest& request = requests.emplace_back(alone.request);
    request.samples = 1;
    request.text.sampling.frequency_penalty = 1.5;
    request.text.sampling.presence_penalty = 1;
  }
  return requests;
}

// More texts at once than the pool bears: they are computed again.
Schedule crowded(const ServingWorkload& workload, Schedule schedule) {
  std::size_t longest = 1;
  for (const std::size_t i : schedule.requests) {
    const GenerationRequest& text = workload.requests()[i].request.text;
    longest = std::max(longest, text.prompt.size() + text.max_new_tokens);
  }
  std::fill(schedule.arrival.begin(), schedule.arrival.end(), 0);
  schedule.cancelled.clear();
  schedule.disk_bytes = 0;
  schedule.options.cache = {.blocks = longest + 2, .block_tokens = 1, .prefix_cache = false};
  return schedule;
}

// What shows in some circumstances only, is looked for there.
Schedule provoking(const ServingFault& fault, const ServingWorkload& workload, Schedule schedule) {
  if (fault.number == 20) return crowded(workload, std::move(schedule));
  if (fault.number == 16) return repeated_prompt(workload, schedule).value_or(schedule);
  if (fault.number == 4) {
    schedule.disk_bytes = std::uint64_t{1} << 30;
    schedule.before = LeftBefore::other_weights;
  }
  if (fault.around) {
    schedule.disk_bytes = std::uint64_t{1} << 30;
    schedule.before = LeftBefore::nothing;
    for (std::size_t i = 0; i < schedule.salts.size(); ++i) schedule.salts[i] = "salt " + std::to_string(i);
  }
  return schedule;
}

}  // namespace

std::vector<ServingFault> serving_faults() {
  std::vector<ServingFault> faults = {
      {1, "vllm#12621", "a hash of 8 bits, and nothing compared", hashed_by<EightBits>()},
      {2, "Megatron-LM#4158", "a polynomial hash, and nothing compared", hashed_by<Polynomial>()},
      {3, "openvino.genai#3722", "a block's key without what stands before it", hashed_by<WithoutParent>()},
      {4, "vllm#3264", "the weights are not in a block's key", hashed_by<WithoutWeights>()},
      {5, "vllm#51640", "the salt is lost", hashed_by<WithoutSalt>()},
      {5, "vllm#44250", "the salt is lost in the second level", {}, false, loses_salts()},
      {6, "llama.cpp#4902", "a prompt that is known is not computed at all", scheduled_by<WholePrompt>()},
      {7, "vllm#3251", "logits of a prompt whose blocks were others'", scheduled_by<ReadsForLogits>()},
      {.number = 8,
       .shipped_in = "nano-vllm#209",
       .what = "a hit on a block that this step has yet to write",
       .parts = scheduled_by<KnownTooEarly>(),
       .needs_rows = true},
      {9, "mini-sglang#142", "a duplicate block freed under its reader", pooled_by<FreesDuplicates>()},
      {10, "sglang#10637", "what can be evicted is counted twice", pooled_by<CountsTwice>()},
      {11, "bytedance-iaas/sglang#508", "a hit holds a block twice", scheduled_by<HoldsTwice>()},
      {12, "MinivLLM#87", "a key names a block that holds something else by now", pooled_by<NeverForgets>()},
      {13, "xllm#828", "one block lost a request", pooled_by<LosesOne>()},
      {16, "vllm#44082", "a hit asks for the block that the guesses would lie in",
       scheduled_by<AsksForOneMore>()},
      {17, "Rapid-MLX#1124", "a window's oldest block is given back too early", scheduled_by<ShortWindow>(),
       true},
      {18, "vllm#51756", "one group's window for all layers", scheduled_by<OneWindow>(), true},
      {19, "vllm-gaudi#524", "preemption loses an output, which is made again",
       scheduled_by<LosesAnOutput>()},
      {20, "vllm#5349", "outputs become prompt where a text is computed again", outputs_become_prompt()},
      {21, "vllm#55192", "part of a state survives preemption", scheduled_by<BelievesItsOldBlocks>()},
      {22, "inference-sim#297", "the first to come gives up its blocks", scheduled_by<TakesFromTheFirst>()},
      {23, "vllm#31731", "a request that can never fit stalls all behind it", scheduled_by<TakesAll>()},
      {24, "vllm#51226", "a seed is lost beside a request without one", seed_of_the_neighbour()},
      {25, "cascadia#20", "a request's random numbers go on from those before", seed_goes_on()},
      {.number = 40,
       .shipped_in = "vllm#4325",
       .what = "forked texts write to one block",
       .parts = scheduled_by<WritesToShared>(),
       .needs_rows = true},
  };
  for (ServingFault& fault : speculation_faults()) faults.insert(faults.end() - 1, std::move(fault));
  return faults;
}

FaultVerdict catch_fault(const ServingWorkload& given, const ServingFault& fault,
                         std::uint64_t most_schedules) {
  std::optional<ServingWorkload> own;
  if (fault.number == 20) own.emplace(given.model(), given.ops(), penalized(given));
  const ServingWorkload& workload = own ? *own : given;
  if (const std::optional<FaultVerdict> verdict = catch_guessing(workload, fault)) return *verdict;
  for (std::uint64_t seed = 0; seed < most_schedules; ++seed) {
    Schedule schedule =
        guessing(fault.guessing, workload, provoking(fault, workload, random_schedule(workload, seed)));
    if (fault.number == 23) {
      // A pool that the longest prompt does not fit in: whoever tells at once says so and stops here.
      std::size_t longest = 0;
      for (const std::size_t i : schedule.requests)
        longest = std::max(longest, workload.requests()[i].request.text.prompt.size());
      SchedulerOptions& cache = schedule.options.cache;
      cache.blocks = std::max<std::size_t>(1, (longest - 1) / cache.block_tokens);
      if (cache.blocks * cache.block_tokens >= longest) continue;
    }
    const ScheduleResult result = run_schedule(workload, schedule, fault.parts, fault.around);
    if (!result.wrong.empty()) return {true, seed + 1, result.wrong};
  }
  return {false, most_schedules, {}};
}

}  // namespace assay
