// How a kernel is to be launched on a given device: decided on the host, without a device and without nvcc,
// so that a plan can be printed, tested against every architecture's limits, and refused before a launch.
//
//   LaunchPlan plan = plan_rms_norm(limits, {.rows = 512, .group = 4096});
//   require_fits(plan);                                  // Error: "does not fit", with the numbers
//   launch_rms_norm(plan, arguments, stream);
//
// A plan never exceeds its limits: a tile that does not fit is not chosen, and where none fits, `fits` is
// false and `why` says what was needed and what there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/extent.h"

namespace assay::cuda {

// Who reduces a row, of kernels that have an instance for each: a warp; a block that keeps it in shared memory, or reads it
// again.
enum class RowTeam : std::uint8_t { warp, block_that_keeps, block };

struct LaunchPlan {
  std::string kernel;   // "rms_norm"
  std::string variant;  // which tile, or which of its instantiations: "256 threads"
  Extent3 grid, block;  // blocks are one-dimensional, and whole warps
  std::size_t shared_bytes = 0;
  int stages = 1;              // of a pipeline through shared memory
  unsigned cluster = 1;        // blocks that run side by side and share what they copy: sm_90 on
  unsigned registers = 0;      // a thread may have: what __launch_bounds__ makes of it
  unsigned blocks_per_sm = 0;  // resident at once
  RowTeam team = RowTeam::block;
  bool fits = true;
  std::string why;
};

// What a planner decided; checked against the limits and completed: blocks_per_sm, and where it breaks a
// limit fits = false and why.
struct LaunchChoice {
  std::string kernel, variant;
  Extent3 grid;
  unsigned threads = 0;
  std::size_t shared_bytes = 0;
  int stages = 1;
  unsigned cluster = 1;
  unsigned registers = 64;
  RowTeam team = RowTeam::block;
  std::string why;
};
LaunchPlan checked_plan(const DeviceLimits& limits, LaunchChoice choice);

// The first limit a plan breaks, in words with both numbers; empty: none.
std::string broken_limit(const DeviceLimits& limits, const LaunchPlan& plan);

// Throws Error::input where the plan does not fit.
void require_fits(const LaunchPlan& plan);

// "128×128×64, 3 stages: grid 32×16×1, block 256, 98,304 bytes of shared memory, 1 block an SM".
std::string describe(const LaunchPlan& plan);

// How many blocks of `size` cover `total`.
constexpr std::size_t blocks_for(std::size_t total, std::size_t size) {
  return (total + size - 1) / size;
}
// `total`, or the next multiple of `step` above it.
constexpr std::size_t round_up(std::size_t total, std::size_t step) {
  return blocks_for(total, step) * step;
}
// A count as kernels take it; one that 32 bits do not hold is an Error.
std::uint32_t narrow(std::size_t count);

}  // namespace assay::cuda
