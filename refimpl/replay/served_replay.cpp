#include "refimpl/replay/served_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/system/error.h"

namespace assay {
namespace {

TokenId token_of(std::uint64_t text, std::uint64_t place, std::size_t vocabulary) {
  std::uint64_t mixed = text * 0x9e3779b97f4a7c15 + place;  // SplitMix64
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return static_cast<TokenId>((mixed ^ (mixed >> 31)) % vocabulary);
}

// An answer that was drawn up before.
class DrawnUp : public TokenConstraint {
 public:
  explicit DrawnUp(std::vector<TokenId> ids) : ids_(std::move(ids)) {}
  void restrict(TokenMask& mask) const override {
    if (made_ >= ids_.size()) return;
    TokenMask only(mask.size());
    only.add(ids_[made_]);
    mask.keep_only(only);
  }
  void push(TokenId) override { ++made_; }
  void pop(std::size_t count) override { made_ -= count; }
  std::unique_ptr<TokenConstraint> fork() const override {
    return std::unique_ptr<TokenConstraint>(new DrawnUp(*this));
  }

 private:
  DrawnUp(const DrawnUp&) = default;
  std::vector<TokenId> ids_;
  std::size_t made_ = 0;
};

// Numbers of blocks by what they hold and what stands before them.
class BlockNumbers {
 public:
  std::vector<std::uint64_t> of(std::span<const TokenId> tokens, std::size_t block_tokens) {
    std::vector<std::uint64_t> numbers;
    BlockKey key = hasher_.root("");
    for (std::size_t first = 0; first + block_tokens <= tokens.size(); first += block_tokens) {
      key = hasher_.next(key, tokens.subspan(first, block_tokens));
      numbers.push_back(numbers_.emplace(key, numbers_.size()).first->second);
    }
    return numbers;
  }

 private:
  BlockHasher hasher_;
  std::unordered_map<BlockKey, std::uint64_t, BlockKeyHash> numbers_;
};

std::size_t divided(std::size_t tokens, std::size_t factor) {
  return std::max<std::size_t>(1, (tokens + factor - 1) / factor);
}

}  // namespace

ScaledTrace scale_trace(const Trace& trace, std::size_t factor, std::size_t vocabulary) {
  if (factor == 0 || (trace.block_tokens != 0 && trace.block_tokens % factor != 0))
    throw Error::usage(fmt::format("--scale {} does not divide the trace's blocks of {} tokens", factor,
                                   trace.block_tokens));
  ScaledTrace scaled;
  scaled.trace.block_tokens = trace.block_tokens / factor;
  scaled.trace.knows_answers = true;
  BlockNumbers numbers;
  constexpr std::uint64_t kAnswers = std::uint64_t{1} << 62;  // beyond any block's number
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& request = trace.requests[i];
    TraceRequest made{request.arrival, divided(request.input, factor), divided(request.output, factor), {}};
    std::vector<TokenId>& text = scaled.texts.emplace_back();
    const std::size_t block = scaled.trace.block_tokens;
    for (std::size_t t = 0; t < made.input; ++t) {
      const std::uint64_t number = block == 0 ? kAnswers + i : request.blocks.at(t / block);
      text.push_back(token_of(number, block == 0 ? t : t % block, vocabulary));
    }
    for (std::size_t t = 0; t < made.output; ++t)
      text.push_back(token_of(kAnswers + i, made.input + t, vocabulary));
    if (block != 0) made.blocks = numbers.of(text, block);
    scaled.trace.requests.push_back(std::move(made));
  }
  return scaled;
}

SimulationOptions scale_options(SimulationOptions options, std::size_t factor) {
  SchedulerOptions& scheduler = options.scheduler;
  for (std::size_t* tokens : {&scheduler.block_tokens, &scheduler.tokens_a_step, &scheduler.chunk})
    *tokens = std::max<std::size_t>(1, *tokens / factor);
  options.token_us *= static_cast<double>(factor);
  return options;
}

EngineServer::EngineServer(const LanguageModel& model, Ops& ops, const ScaledTrace& scaled,
                           const SchedulerOptions& options, std::size_t disk_blocks)
    : scaled_(scaled) {
  if (!model.cache_serves(1, model.context()))
    throw Error::usage("the model's rotary frequencies follow the length of a text")
        .remedy("replay with a model whose caches serve texts of any length");
  ServingParts parts;
  if (disk_blocks > 0) {
    folder_.emplace();
    parts.outer = [this, disk_blocks](Ops& on, const BlockStorage& storage) {
      const DiskLevel measured(on, storage, {.folder = folder_->path()});
      sizes_.plain.clear();
      for (std::size_t g = 0; g < storage.groups().size(); ++g)
        sizes_.plain.push_back(measured.file_bytes(g, false));
      const bool states = std::any_of(storage.widths().begin(), storage.widths().end(),
                                      [](const CacheWidth& width) { return !width.states.empty(); });
      sizes_.with_states = states ? measured.file_bytes(0, true) : 0;
      disk_bytes_ = disk_blocks * std::max<std::uint64_t>(sizes_.plain.front(), sizes_.with_states);
      return std::make_unique<DiskLevel>(on, storage,
                                         DiskOptions{.folder = folder_->path(), .most_bytes = disk_bytes_});
    };
  }
  engine_ = std::make_unique<ServingEngine>(model, ops,
                                            ServingOptions{.cache = options, .identity = "replay"}, parts);
}

void EngineServer::add(std::size_t index) {
  const TraceRequest& request = scaled_.trace.requests[index];
  const std::vector<TokenId>& text = scaled_.texts[index];
  const auto answer = text.begin() + static_cast<std::ptrdiff_t>(request.input);
  ServingRequest asked;
  asked.text.prompt.assign(text.begin(), answer);
  asked.text.max_new_tokens = request.output;
  asked.text.constraint = std::make_shared<DrawnUp>(std::vector<TokenId>(answer, text.end()));
  engine_->submit(asked);
  indices_.push_back(index);
}

void EngineServer::step(const std::function<void(const StepPlan&)>& planned) {
  engine_->watch_plans(planned);
  engine_->step();
}

SimulationOptions EngineServer::as_counted(SimulationOptions options) const {
  options.scheduler = engine_->scheduler().options();
  options.disk_bytes = disk_bytes_;
  options.block_sizes = sizes_;
  return options;
}

bool same_counts(const SimulationCounts& a, const SimulationCounts& b) {
  const auto counts = [](const SimulationCounts& c) {
    return std::make_tuple(c.requests, c.refused, c.rejected, c.finished, c.late, c.steps, c.prompt_tokens,
                           c.computed_tokens, c.made_tokens, c.hit_tokens, c.recomputed_tokens, c.evictions,
                           c.preemptions, c.most_waiting, c.loaded_blocks, c.mean_waiting, c.mean_running,
                           c.batch_fill);
  };
  return counts(a) == counts(b);
}

}  // namespace assay
