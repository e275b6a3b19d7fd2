#include "refimpl/claims/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "refimpl/block_store/disk_level.h"
#include "refimpl/block_store/scratch_folder.h"
#include "refimpl/claims/other_weights.h"

namespace assay {
namespace {

constexpr std::size_t kMostSteps = 20'000;  // some hundred are needed

bool same_bits(const LogitRows& a, const LogitRows& b) {
  const auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

double largest_difference(const LogitRows& a, const LogitRows& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    double difference = 0, scale = 0;
    for (std::size_t i = 0; i < a[r].size(); ++i) {
      difference = larger_or_nan(difference, std::abs(a[r][i] - b[r][i]));
      scale = std::max(scale, std::abs(b[r][i]));
    }
    worst = larger_or_nan(worst, difference == 0 ? 0 : difference / scale);
  }
  return worst;
}

// The schedule's second level on disk, in a folder that goes with it.
class ScheduleDisk {
 public:
  ScheduleDisk(const Schedule& schedule, const OuterAround& around) : schedule_(schedule), around_(around) {
    if (schedule.disk_bytes > 0) folder_.emplace();
  }
  ServingParts with_level(ServingParts parts) const {
    if (!folder_) return parts;
    parts.outer = [this](Ops& ops, const BlockStorage& storage) -> std::unique_ptr<OuterLevel> {
      const DiskOptions options{.folder = folder_->path(),
                                .most_bytes = schedule_.disk_bytes,
                                .told = {},
                                .by_layer = schedule_.disk_bytes % 2 == 0};
      auto level = std::make_unique<DiskLevel>(ops, storage, options);
      if (around_) return around_(std::move(level));
      return level;
    };
    return parts;
  }

 private:
  const Schedule& schedule_;
  OuterAround around_;
  std::optional<ScratchFolder> folder_;
};

class ScheduleRun {
 public:
  ScheduleRun(const ServingWorkload& workload, const Schedule& schedule, const ServingParts& parts,
              const ScheduleDisk& disk)
      : workload_(workload),
        s_(schedule),
        engine_(workload.model(), workload.ops(), schedule.options, disk.with_level(parts)) {
    engine_.listen(
        [this](std::size_t request, std::size_t sample, TokenId, std::span<const double> row) {
          chosen_[{request, sample}].emplace_back(row.begin(), row.end());
        },
        [this](std::size_t request, std::size_t, std::span<const double> row) {
          prompts_[request].emplace_back(row.begin(), row.end());
        });
  }

  ScheduleResult run() {
    try {
      serve();
      compare();
      look_at_pools();
    } catch (const Error& error) {
      note(error.line());
    } catch (const std::exception& error) {  // a planted fault may break what nobody else can
      note(error.what());
    }
    result_.counts = engine_.counts();
    for (const auto& pool : engine_.scheduler().pools()) result_.evictions += pool->evictions();
    return std::move(result_);
  }

 private:
  void note(const std::string& wrong) {
    if (result_.wrong.empty()) result_.wrong = wrong;
  }

  void serve() {
    bool going = true;
    for (std::size_t step = 0; going || come_ < s_.requests.size(); ++step) {
      if (step > kMostSteps) return note(fmt::format("no end after {} steps", kMostSteps));
      for (std::size_t i = 0; i < s_.requests.size(); ++i) {
        if (s_.arrival[i] == step) submit(i);
        const auto cancelled = s_.cancelled.find(i);
        if (cancelled != s_.cancelled.end() && cancelled->second == step) engine_.cancel(numbers_.at(i));
      }
      going = engine_.step();
    }
  }

  void submit(std::size_t i) {
    ++come_;
    ServingRequest request = workload_.requests()[s_.requests[i]].request;
    request.salt = s_.salts[i];
    const bool fits = s_.refused.count(i) == 0;
    try {
      numbers_[i] = engine_.submit(request);
    } catch (const Error&) {
      if (fits) throw;
      numbers_.erase(i);
    }
  }

  void compare() {
    for (const auto& [i, number] : numbers_) {
      if (s_.refused.count(i) != 0) note(fmt::format("request {} fits nowhere and was taken", i));
      if (s_.cancelled.count(i) != 0) continue;
      const AloneRequest& alone = workload_.requests()[s_.requests[i]];
      for (std::size_t sample = 0; sample < alone.request.samples; ++sample)
        compare(i, sample, engine_.result(number, sample), chosen_[{number, sample}]);
      judge(fmt::format("request {}: logits of its prompt", i), prompts_[number], alone.prompt);
    }
  }

  void compare(std::size_t i, std::size_t sample, const Generation& made, const LogitRows& rows) {
    const AloneRequest& alone = workload_.requests()[s_.requests[i]];
    const std::string name = fmt::format("request {}, sample {}", i, sample);
    if (made.ids != alone.made[sample].ids) {
      note(fmt::format("{}: tokens {} and alone {}", name, fmt::join(made.ids, " "),
                       fmt::join(alone.made[sample].ids, " ")));
      result_.error = std::numeric_limits<double>::infinity();
      return;
    }
    if (made.finish_reason != alone.made[sample].finish_reason) note(name + ": it ended otherwise");
    judge(name + ": logits", rows, alone.chosen_from[sample]);
  }

  void judge(const std::string& what, const LogitRows& found, const LogitRows& alone) {
    if (same_bits(found, alone)) return;
    const double error = largest_difference(found, alone);
    result_.error = larger_or_nan(result_.error, error);
    note(fmt::format("{} differ from those alone by {:.2g}", what, error));
  }

  void look_at_pools() {
    for (const auto& pool : engine_.scheduler().pools()) {
      std::size_t held = 0;
      for (std::size_t b = 0; b < pool->size(); ++b)
        held += pool->holders(static_cast<BlockId>(b)) > 0 ? 1 : 0;
      if (held > 0 || pool->queue().size() != pool->size())
        note(fmt::format("at the end {} of {} blocks are held and {} free", held, pool->size(),
                         pool->queue().size()));
    }
    if (s_.hits && engine_.counts().hit_tokens != *s_.hits)
      note(fmt::format("{} tokens hit, and {} were known", engine_.counts().hit_tokens, *s_.hits));
    const bool salted =
        s_.before != LeftBefore::same_weights &&
        std::all_of(s_.salts.begin(), s_.salts.end(), [](const auto& salt) { return !salt.empty(); });
    if (salted && engine_.counts().hit_tokens > 0 && engine_.counts().preemptions == 0)
      note(fmt::format("{} tokens hit across salts", engine_.counts().hit_tokens));
  }

  const ServingWorkload& workload_;
  const Schedule& s_;
  ServingEngine engine_;
  std::size_t come_ = 0;
  std::map<std::size_t, std::size_t> numbers_;  // which of the schedule → the engine's
  std::map<std::pair<std::size_t, std::size_t>, LogitRows> chosen_;
  std::map<std::size_t, LogitRows> prompts_;
  ScheduleResult result_;
};

// All requests, by another process; then it ends.
void leave_blocks(const ServingWorkload& workload, const Schedule& schedule, const ServingParts& parts) {
  const OtherWeights other(workload.model());
  const bool same = schedule.before == LeftBefore::same_weights;
  ServingOptions options = schedule.options;
  if (!same) options.identity += ", other weights";
  ServingEngine engine(same ? workload.model() : other, workload.ops(), options, parts);
  for (std::size_t i = 0; i < schedule.requests.size(); ++i) {
    ServingRequest request = workload.requests()[schedule.requests[i]].request;
    request.salt = schedule.salts[i];
    engine.submit(request);
  }
  for (std::size_t step = 0; step < kMostSteps && engine.step(); ++step) {
  }
  engine.keep_all();
}

}  // namespace

Schedule random_schedule(const ServingWorkload& workload, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto one_of = [&](const std::vector<std::size_t>& list) { return list[below(list.size())]; };
  Schedule s;
  s.options.poison = true;
  s.options.identity = "schedule";
  SchedulerOptions& cache = s.options.cache;
  cache.block_tokens = one_of({1, 3, 16, 64});
  cache.chunk = one_of({1, 3, 512, 512});
  cache.tokens_a_step = one_of({1, 7, 64, 512});
  cache.texts_at_once = one_of({1, 2, 5, 256});
  cache.policy = static_cast<Policy>(below(4));
  cache.preemption = static_cast<Preemption>(below(2));
  cache.prefix_cache = below(5) != 0;
  const auto& sources = workload.sources();
  static const std::vector<TreeShape> shapes = {{1},    {1, 1, 1}, {1, 1, 1, 1, 1, 1, 1},
                                                {2, 1}, {3, 2},    {2, 2, 1}};
  if (below(3) != 0)
    s.options.speculation = {.source = sources[below(sources.size())], .shape = shapes[below(shapes.size())]};
  const std::size_t count = 1 + below(16);
  const bool salted = below(6) == 0;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < count; ++i) {
    s.requests.push_back(below(workload.requests().size()));
    s.arrival.push_back(below(20));
    s.salts.push_back(salted ? fmt::format("salt {}", i) : std::string());
    const GenerationRequest& text = workload.requests()[s.requests.back()].request.text;
    longest = std::max(longest, text.prompt.size() + text.max_new_tokens);
    if (below(8) == 0) s.cancelled[i] = s.arrival.back() + below(12);
  }
  const std::size_t least = (longest + cache.block_tokens - 1) / cache.block_tokens;
  cache.blocks = least + (below(2) == 0 ? below(3) : below(6 * least + 1));
  if (below(3) == 0) {
    cache.prefix_cache = true;
    s.disk_bytes = below(2) == 0 ? 1'000 + below(100'000) : std::uint64_t{1} << 30;
    const LeftBefore before[] = {LeftBefore::nothing, LeftBefore::same_weights, LeftBefore::same_weights,
                                 LeftBefore::other_weights};
    s.before = before[below(4)];
  }
  return s;
}

ScheduleResult run_schedule(const ServingWorkload& workload, const Schedule& schedule,
                            const ServingParts& parts, const OuterAround& around) {
  const ScheduleDisk disk(schedule, around);
  try {
    if (schedule.disk_bytes > 0 && schedule.before != LeftBefore::nothing)
      leave_blocks(workload, schedule, disk.with_level(parts));
  } catch (const std::exception& error) {  // a planted fault may break what nobody else can
    return {.wrong = error.what(), .counts = {}};
  }
  return ScheduleRun(workload, schedule, parts, disk).run();
}

}  // namespace assay
