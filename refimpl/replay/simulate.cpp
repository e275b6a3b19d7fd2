#include "refimpl/replay/simulate.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/system/error.h"
#include "refimpl/replay/trace_keys.h"

namespace assay {
namespace {

constexpr std::size_t kMoments = 400;  // of a time line

// Counts and keys alone: the scheduler and its pools.
class CountsOnly : public TextServer {
 public:
  CountsOnly(const Trace& trace, const SimulationOptions& options)
      : trace_(trace),
        block_(options.scheduler.block_tokens),
        scheduler_(options.scheduler, [](const ServedText&, std::size_t wanted) { return wanted; }) {
    if (options.disk_bytes == 0) return;
    disk_.emplace(options.block_sizes, options.disk_bytes);
    scheduler_.set_outer(&*disk_);
  }

  Scheduler& scheduler() override { return scheduler_; }
  void add(std::size_t index) override {
    auto text = std::make_unique<ServedText>();
    text->number = index;
    text->tokens = trace_.requests[index].input;
    grow_keys(*text);
    scheduler_.add(*text);
    made_[text.get()] = 0;
    texts_.emplace(text.get(), std::move(text));
  }
  void step(const std::function<void(const StepPlan&)>& planned) override {
    const StepPlan plan = scheduler_.plan();
    if (plan.empty()) throw Error::internal("texts wait and no step serves them");
    planned(plan);
    scheduler_.complete(plan,
                        [](const ServedText&) { return std::make_shared<const SequenceCache::States>(); });
    for (const StepPlan::Feed& feed : plan.feeds) {
      if (feed.text->pending() == 0) make_one(*feed.text);
    }
  }
  std::size_t index_of(const ServedText& text) const override { return text.number; }

 private:
  // Keys of full blocks: the trace's for what it knows, new ones for the rest.
  void grow_keys(ServedText& text) {
    const TraceRequest& request = trace_.requests[text.number];
    const std::size_t known_tokens = request.input + (trace_.knows_answers ? request.output : 0);
    if (text.keys.empty()) text.keys.push_back({});
    while (text.keys.size() <= text.tokens / block_) {
      const std::size_t b = text.keys.size() - 1;
      const bool known = b < request.blocks.size() && (b + 1) * block_ <= known_tokens;
      text.keys.push_back(key_of(known ? request.blocks[b] : kOwn - own_++));
    }
  }
  void make_one(ServedText& text) {
    if (++made_[&text] < trace_.requests[text.number].output) {
      ++text.tokens;
      return grow_keys(text);
    }
    scheduler_.finish(text);
    made_.erase(&text);
    texts_.erase(&text);
  }

  static constexpr std::uint64_t kOwn = ~std::uint64_t{0};  // downwards: no trace's own

  const Trace& trace_;
  std::size_t block_;
  Scheduler scheduler_;
  std::optional<CountedLevel> disk_;
  std::unordered_map<const ServedText*, std::unique_ptr<ServedText>> texts_;
  std::unordered_map<const ServedText*, std::size_t> made_;
  std::uint64_t own_ = 0;
};

struct Simulated {
  std::size_t made = 0, furthest = 0, computed = 0;
  double first_token = -1;
};

class Simulation {
 public:
  Simulation(const Trace& trace, const SimulationOptions& options, TextServer& server)
      : trace_(trace), options_(options), server_(server) {
    counts_.requests = trace.requests.size();
  }

  SimulationCounts run(const std::function<bool(std::size_t)>& progress) {
    while (next_ < trace_.requests.size() || !under_way_.empty()) {
      if (under_way_.empty()) now_ = std::max(now_, trace_.requests[next_].arrival);
      while (next_ < trace_.requests.size() && trace_.requests[next_].arrival <= now_) arrive(next_++);
      if (!under_way_.empty()) server_.step([this](const StepPlan& plan) { count(plan); });
      if (progress && !progress(counts_.finished + counts_.refused + counts_.rejected)) break;
    }
    finish_counts();
    return std::move(counts_);
  }

 private:
  void arrive(std::size_t index) {
    const TraceRequest& request = trace_.requests[index];
    if (request.input + request.output > std::min(server_.scheduler().capacity(), options_.context)) {
      ++counts_.refused;
      return;
    }
    if (options_.reject_early && options_.first_token_slo_ms > 0 &&
        now_ - request.arrival + expected_wait(request.input) > options_.first_token_slo_ms) {
      ++counts_.rejected;
      return;
    }
    server_.add(index);
    under_way_[index] = {};
  }

  // Until the first token of a prompt that came now: all prompts' tokens before it, in full steps.
  double expected_wait(std::size_t input) const {
    std::size_t ahead = input;
    for (const ServedText* text : server_.scheduler().waiting()) ahead += text->pending();
    for (const ServedText* text : server_.scheduler().running()) ahead += text->pending();
    const std::size_t a_step = options_.scheduler.tokens_a_step, steps = (ahead + a_step - 1) / a_step;
    return static_cast<double>(steps) * options_.step_ms +
           static_cast<double>(ahead) * options_.token_us / 1000;
  }

  // Before it is computed.
  void count(const StepPlan& plan) {
    std::size_t tokens = 0;
    for (const StepPlan::Admission& admission : plan.admitted) {
      if (!admission.swapped_in) counts_.hit_tokens += admission.text->hit;
    }
    for (const StepPlan::Feed& feed : plan.feeds) tokens += feed.tokens;
    now_ += options_.step_ms + static_cast<double>(tokens) * options_.token_us / 1000;
    count_step(plan, tokens);
    for (const StepPlan::Feed& feed : plan.feeds) {
      const std::size_t index = server_.index_of(*feed.text), begin = feed.text->cached;
      Simulated& s = under_way_.at(index);
      s.computed += feed.tokens;
      counts_.recomputed_tokens += std::min(feed.tokens, s.furthest - std::min(s.furthest, begin));
      s.furthest = std::max(s.furthest, begin + feed.tokens);
      if (feed.text->pending() == feed.tokens && makes_its_last(s, trace_.requests[index]))
        under_way_.erase(index);
    }
  }

  bool makes_its_last(Simulated& s, const TraceRequest& request) {
    if (s.first_token < 0) s.first_token = now_;
    if (s.made < request.output) {
      ++s.made;
      ++counts_.made_tokens;
    }
    if (s.made < request.output) return false;
    ++counts_.finished;
    counts_.prompt_tokens += request.input;
    const double first = s.first_token - request.arrival;
    counts_.first_token_ms.push_back(first);
    if (s.made > 1)
      counts_.between_tokens_ms.push_back((now_ - s.first_token) / static_cast<double>(s.made - 1));
    if (options_.first_token_slo_ms > 0 && first > options_.first_token_slo_ms) {
      ++counts_.late;
      counts_.late_tokens += s.computed;
    }
    return true;
  }

  void count_step(const StepPlan& plan, std::size_t tokens) {
    ++counts_.steps;
    counts_.computed_tokens += tokens;
    counts_.preemptions += plan.preemptions;
    counts_.loaded_blocks += plan.loads.size();
    const std::size_t waiting = server_.scheduler().waiting().size(),
                      running = server_.scheduler().running().size();
    counts_.most_waiting = std::max(counts_.most_waiting, waiting);
    counts_.mean_waiting += static_cast<double>(waiting);
    counts_.mean_running += static_cast<double>(running);
    counts_.batch_fill +=
        std::min(1.0, static_cast<double>(tokens) / static_cast<double>(options_.scheduler.tokens_a_step));
    add_moment(running, waiting, tokens);
  }

  // Every few steps one; when there are too many, half of them.
  void add_moment(std::size_t running, std::size_t waiting, std::size_t tokens) {
    since_ += tokens;
    if (++steps_since_ < stride_) return;
    counts_.moments.push_back({now_, running, waiting, since_ / steps_since_});
    since_ = steps_since_ = 0;
    if (counts_.moments.size() < 2 * kMoments) return;
    std::vector<SimulatedMoment> half;
    for (std::size_t i = 1; i < counts_.moments.size(); i += 2) {
      SimulatedMoment both = counts_.moments[i];
      both.tokens = (both.tokens + counts_.moments[i - 1].tokens) / 2;
      half.push_back(both);
    }
    counts_.moments = std::move(half);
    stride_ *= 2;
  }

  void finish_counts() {
    const auto steps = static_cast<double>(std::max<std::size_t>(1, counts_.steps));
    counts_.ms = now_;
    counts_.mean_waiting /= steps;
    counts_.mean_running /= steps;
    counts_.batch_fill /= steps;
    counts_.evictions = server_.scheduler().pools().front()->evictions();
  }

  const Trace& trace_;
  SimulationOptions options_;
  TextServer& server_;
  std::unordered_map<std::size_t, Simulated> under_way_;
  std::size_t next_ = 0;
  double now_ = 0;
  std::size_t since_ = 0, steps_since_ = 0, stride_ = 1;
  SimulationCounts counts_;
};

}  // namespace

SimulationCounts simulate(const Trace& trace, const SimulationOptions& options,
                          const std::function<bool(std::size_t)>& progress) {
  CountsOnly server(trace, options);
  return Simulation(trace, options, server).run(progress);
}

SimulationCounts simulate(const Trace& trace, const SimulationOptions& options, TextServer& server,
                          const std::function<bool(std::size_t)>& progress) {
  return Simulation(trace, options, server).run(progress);
}

}  // namespace assay
