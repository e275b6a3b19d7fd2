#include "refimpl/claims/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/system/error.h"
#include "refimpl/step/cache_contents.h"

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

class FreesTheBeginningFirst : public BlockPool {
 public:
  using BlockPool::BlockPool;
  void release_all(std::span<const BlockId> blocks) override {
    for (const BlockId block : blocks) {
      if (block >= 0) release(block);
    }
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

}  // namespace

std::vector<ServingFault> serving_faults() {
  std::vector<ServingFault> faults = {
      {1, "vllm#12621", "a hash of 8 bits, and nothing compared", hashed_by<EightBits>(), different_prompts},
      {2, "Megatron-LM#4158", "a polynomial hash, and nothing compared", hashed_by<Polynomial>(),
       prompts_of_one_sum, ShowsIn::many_tokens},
      {3, "openvino.genai#3722", "a block's key without what stands before it", hashed_by<WithoutParent>(),
       blocks_behind_others},
      {4, "vllm#3264", "the weights are not in a block's key", hashed_by<WithoutWeights>(),
       blocks_of_other_weights},
      {5, "vllm#51640", "the salt is lost", hashed_by<WithoutSalt>(), repeated_under_a_salt},
      {5,
       "vllm#44250",
       "the salt is lost in the second level",
       {},
       evicted_under_a_salt,
       ShowsIn::any,
       loses_salts()},
      {6, "llama.cpp#4902", "a prompt that is known is not computed at all", scheduled_by<WholePrompt>(),
       repeated},
      {7, "vllm#3251", "logits of a prompt whose blocks were others'", scheduled_by<ReadsForLogits>(),
       repeated_for_logits},
      {8, "nano-vllm#209", "a hit on a block that this step has yet to write", scheduled_by<KnownTooEarly>(),
       twice_amid_a_block, ShowsIn::no_states},
      {9, "mini-sglang#142", "a duplicate block freed under its reader", pooled_by<FreesDuplicates>(),
       twice_at_once},
      {10, "sglang#10637", "what can be evicted is counted twice", pooled_by<CountsTwice>(),
       more_than_is_free},
      {11, "bytedance-iaas/sglang#508", "a hit holds a block twice", scheduled_by<HoldsTwice>(), repeated},
      {12, "MinivLLM#87", "a key names a block that holds something else by now", pooled_by<NeverForgets>(),
       recycled},
      {13, "xllm#828", "one block lost a request", pooled_by<LosesOne>(), repeated},
      {14, "vLLM's rule", "blocks are freed, and so evicted, from the beginning of a text",
       pooled_by<FreesTheBeginningFirst>(), evicted_in_part},
      {16, "vllm#44082", "a hit asks for the block that the guesses would lie in",
       scheduled_by<AsksForOneMore>(), repeated_and_counted},
      {17, "Rapid-MLX#1124", "a window's oldest block is given back too early", scheduled_by<ShortWindow>(),
       beyond_the_window, ShowsIn::windows},
      {18, "vllm#51756", "one group's window for all layers", scheduled_by<OneWindow>(), beyond_the_window,
       ShowsIn::several_windows},
      {19, "vllm-gaudi#524", "preemption loses an output, which is made again", scheduled_by<LosesAnOutput>(),
       two_that_crowd},
      {20, "vllm#5349", "outputs become prompt where a text is computed again", outputs_become_prompt(),
       two_that_crowd_penalized},
      {21, "vllm#55192", "part of a state survives preemption", scheduled_by<BelievesItsOldBlocks>(),
       three_that_crowd},
      {22, "inference-sim#297", "the first to come gives up its blocks", scheduled_by<TakesFromTheFirst>(),
       two_that_crowd, ShowsIn::rows},
      {23, "vllm#31731", "a request that can never fit stalls all behind it", scheduled_by<TakesAll>(),
       one_that_never_fits},
      {24, "vllm#51226", "a seed is lost beside a request without one", seed_of_the_neighbour(),
       two_that_are_drawn},
      {25, "cascadia#20", "a request's random numbers go on from those before", seed_goes_on(),
       two_that_are_drawn},
      {40, "vllm#4325", "forked texts write to one block", scheduled_by<WritesToShared>(),
       forked_amid_a_block, ShowsIn::rows},
  };
  for (ServingFault& fault : speculation_faults()) faults.push_back(std::move(fault));
  std::stable_sort(faults.begin(), faults.end(),
                   [](const ServingFault& a, const ServingFault& b) { return a.number < b.number; });
  return faults;
}

std::string why_not(const ServingFault& fault, const LanguageModel& model) {
  constexpr std::size_t kTokensOfCollidingPrompts = 48;
  const std::vector<CacheWidth> widths = model.cache_widths();
  switch (fault.shows_in) {
    case ShowsIn::any: break;
    case ShowsIn::windows:
      if (cache_groups(widths).size() < 2) return "no layer has a window";
      break;
    case ShowsIn::several_windows:
      // The first group sees everything, and may have no layers.
      if (cache_groups(widths).size() < (cache_groups(widths).front().layers.empty() ? 3 : 2))
        return "all its layers look equally far back";
      break;
    case ShowsIn::rows:
      if (!keeps_rows(widths)) return "no layer keeps rows of its tokens";
      break;
    case ShowsIn::no_states:
      if (keeps_states(widths))
        return "a prefix of recurrent layers is found by a state, which a step leaves behind";
      break;
    case ShowsIn::trees:
      if (keeps_states(widths)) return "its recurrent layers take back chains of guesses, not trees";
      break;
    case ShowsIn::prediction_layers:
      if (model.draft_layers() == 0) return "it has no layers for multi-token prediction";
      break;
    case ShowsIn::many_tokens:
      if (model.vocabulary() < kTokensOfCollidingPrompts) return "its vocabulary has no prompts that collide";
      break;
  }
  return {};
}

FaultVerdict catch_fault(const ServingWorkload& given, const ServingFault& fault, std::uint64_t seed) {
  if (fault.made_visible == nullptr) return catch_guessing(given, fault);
  DirectedCase test = fault.made_visible({given.model(), given.ops(), seed});
  const ServingWorkload workload(given.model(), given.ops(), test.requests);
  if (const std::string wrong = run_schedule(workload, test.schedule).wrong; !wrong.empty())
    throw Error::internal(fmt::format("the workload of fault {}, without it: {}", fault.number, wrong));
  if (fault.guessing.rule) test.schedule.options.speculation.rule = fault.guessing.rule;
  const std::string wrong = run_schedule(workload, test.schedule, fault.parts, fault.around).wrong;
  return {!wrong.empty(), wrong};
}

}  // namespace assay
