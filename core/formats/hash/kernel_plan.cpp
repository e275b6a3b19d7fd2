#include "core/formats/hash/kernel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/system/error.h"

namespace assay::sha256 {
namespace {

constexpr double kGiga = 1e9;
// Fewer lanes for a rate this close to the best: less memory, and files end sooner.
constexpr double kLevel = 0.97;

double block_seconds(const Kernel& kernel, double rate) {
  return static_cast<double>(kernel.lanes) * kBlock / (rate * kGiga);
}

}  // namespace

KernelPlan::KernelPlan(const std::vector<Candidate>& candidates) {
  // cost[n]: seconds to advance n messages by one block. Either one kernel takes them all, or it takes its
  // fill and the rest is a smaller problem, solved before.
  std::array<double, kMaxLanes + 1> cost{};
  for (int n = 1; n <= kMaxLanes; ++n) {
    cost[n] = std::numeric_limits<double>::infinity();
    for (const Candidate& c : candidates) {
      const int rest = std::max(0, n - c.kernel->lanes);
      if (c.seconds + cost[rest] >= cost[n]) continue;
      cost[n] = c.seconds + cost[rest];
      steps_[n] = {c.kernel};
      steps_[n].insert(steps_[n].end(), steps_[rest].begin(), steps_[rest].end());
    }
  }
  double best = 0;
  for (int n = 1; n <= kMaxLanes; ++n) best = std::max(best, n / cost[n]);
  while (lanes_ / cost[lanes_] < kLevel * best) ++lanes_;
}

KernelPlan KernelPlan::typical() {
  std::vector<Candidate> candidates;
  for (const Kernel& k : kernels()) candidates.push_back({&k, block_seconds(k, k.typical_rate)});
  return KernelPlan(candidates);
}

const KernelPlan& KernelPlan::measured() {
  static const KernelPlan plan = [] {
    std::vector<Candidate> candidates;
    for (const Kernel& k : kernels())
      candidates.push_back({&k, block_seconds(k, measure_rate(k, 16 << 10, 5))});
    return KernelPlan(candidates);
  }();
  return plan;
}

KernelPlan KernelPlan::only(std::string_view name) {
  for (const Kernel& k : kernels()) {
    if (k.name == name) return KernelPlan({{&k, block_seconds(k, k.typical_rate)}});
  }
  throw Error::usage(fmt::format("this machine has no SHA-256 kernel named '{}'", name));
}

void KernelPlan::run(std::span<State* const> states, std::span<const std::byte* const> data,
                     std::size_t blocks) const {
  for (const Kernel* kernel : steps_[states.size()]) {
    const std::size_t taken = std::min(states.size(), static_cast<std::size_t>(kernel->lanes));
    compress(*kernel, states.first(taken), data.first(taken), blocks);
    states = states.subspan(taken);
    data = data.subspan(taken);
  }
}

double measure_rate(const Kernel& kernel, std::size_t bytes_per_lane, int repetitions) {
  const std::size_t stride = bytes_per_lane + kStagger;
  const std::vector<std::byte> bytes(stride * static_cast<std::size_t>(kernel.lanes), std::byte{0x5a});
  std::vector<State> states(static_cast<std::size_t>(kernel.lanes), kInitialState);
  std::vector<State*> state_at;
  std::vector<const std::byte*> data_at;
  for (std::size_t i = 0; i < states.size(); ++i) {
    state_at.push_back(&states[i]);
    data_at.push_back(bytes.data() + i * stride);
  }
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= repetitions; ++i) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    compress(kernel, state_at, data_at, bytes_per_lane / kBlock);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<double>(bytes_per_lane) * kernel.lanes / best / kGiga;
}

}  // namespace assay::sha256
