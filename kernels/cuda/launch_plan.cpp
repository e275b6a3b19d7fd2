#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/plan_words.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::cuda {

std::string broken_limit(const DeviceLimits& limits, const LaunchPlan& plan) {
  const auto threads = plan.block.count();
  const auto says = [&](std::string_view what, std::size_t needed, std::size_t there) {
    return fmt::format("does not fit sm_{}: {} of {} where there are {}", limits.sm, what,
                       with_thousands(needed), with_thousands(there));
  };
  if (threads == 0 || threads % kWarp != 0 || plan.block.y != 1 || plan.block.z != 1)
    return fmt::format("a block of {} × {} × {} threads is not whole warps in one dimension", plan.block.x,
                       plan.block.y, plan.block.z);
  if (threads > limits.threads_per_block) return says("threads a block", threads, limits.threads_per_block);
  if (plan.shared_bytes > limits.shared_per_block)
    return says("shared memory a block", plan.shared_bytes, limits.shared_per_block);
  if (plan.registers > limits.registers_per_thread)
    return says("registers a thread", plan.registers, limits.registers_per_thread);
  if (plan.cluster > 1 && limits.sm < 90) return says("blocks a cluster", plan.cluster, 1);
  if (plan.grid.x % plan.cluster != 0)
    return fmt::format("{} blocks in x are not whole clusters of {}", plan.grid.x, plan.cluster);
  if (plan.grid.x > kMostGridColumns) return says("blocks in x", plan.grid.x, kMostGridColumns);
  if (plan.grid.y > kMostGridRows) return says("blocks in y", plan.grid.y, kMostGridRows);
  if (plan.grid.z > kMostGridRows) return says("blocks in z", plan.grid.z, kMostGridRows);
  if (resident_blocks(limits, plan.block.x, plan.shared_bytes, plan.registers) == 0)
    return says("registers a block", plan.registers * threads, limits.registers_per_sm);
  return {};
}

thread_local bool PlansWithoutWords::silent = false;

LaunchPlan checked_plan(const DeviceLimits& limits, LaunchChoice choice) {
  LaunchPlan plan;
  plan.kernel = std::move(choice.kernel);
  plan.variant = std::move(choice.variant);
  plan.grid = choice.grid;
  plan.block = {choice.threads, 1, 1};
  plan.shared_bytes = choice.shared_bytes;
  plan.stages = choice.stages;
  plan.cluster = choice.cluster;
  plan.registers = choice.registers;
  plan.team = choice.team;
  plan.why = std::move(choice.why);
  const std::string broken = broken_limit(limits, plan);
  plan.fits = broken.empty();
  if (!plan.fits) {
    plan.why = broken;
    return plan;
  }
  plan.blocks_per_sm = resident_blocks(limits, choice.threads, plan.shared_bytes, plan.registers);
  return plan;
}

void require_fits(const LaunchPlan& plan) {
  if (!plan.fits) throw Error::input(fmt::format("cuda {}: {}", plan.kernel, plan.why));
}

std::string describe(const LaunchPlan& plan) {
  if (!plan.fits) return plan.why;
  return fmt::format(
      "{}{}: grid {}×{}×{}{}, block {}, {} bytes of shared memory, {} an SM", plan.variant,
      plan.stages > 1 ? fmt::format(", {} stages", plan.stages) : std::string(), plan.grid.x, plan.grid.y,
      plan.grid.z, plan.cluster > 1 ? fmt::format(" in clusters of {}", plan.cluster) : std::string(),
      plan.block.x, with_thousands(plan.shared_bytes),
      plan.blocks_per_sm == 1 ? std::string("1 block") : fmt::format("{} blocks", plan.blocks_per_sm));
}

std::uint32_t narrow(std::size_t count) {
  if (count > 0xFFFFFFFFu)
    throw Error::input(fmt::format("{}: kernels index with 32 bits", with_thousands(count)));
  return static_cast<std::uint32_t>(count);
}

}  // namespace assay::cuda
