#include <fmt/format.h>

#include "kernels/cuda/norm.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostOfAWarp = 1024;  // columns: 32 floats a thread
constexpr std::size_t kSumsBytes = 128;     // a float for each of at most 32 warps
constexpr unsigned kRegisters = 40;

}  // namespace

LaunchPlan plan_rms_norm(const DeviceLimits& limits, const RmsNormShape& shape) {
  LaunchChoice choice = {.kernel = "rms_norm", .registers = kRegisters};
  if (shape.group <= kMostOfAWarp) {
    choice.variant = "a warp a group";
    choice.threads = 128;
    choice.grid.x = static_cast<unsigned>(blocks_for(shape.count, 4));
    choice.why = fmt::format("{} columns are read at once by a warp", shape.group);
    return checked_plan(limits, std::move(choice));
  }
  choice.threads = 256;
  choice.grid.x = static_cast<unsigned>(shape.count);
  const std::size_t kept = kSumsBytes + blocks_for(shape.group, 4) * 16;
  // Kept, a row is read once; but fewer than two blocks an SM would wait for memory with nothing else to do.
  if (resident_blocks(limits, choice.threads, kept, kRegisters) >= 2) {
    choice.variant = "a block a group, kept";
    choice.shared_bytes = kept;
    choice.why = fmt::format("{} columns stay in shared memory between the two passes", shape.group);
  } else {
    choice.variant = "a block a group, read twice";
    choice.shared_bytes = kSumsBytes;
    choice.why = fmt::format("{} columns are too many to be kept by two blocks of an SM", shape.group);
  }
  return checked_plan(limits, std::move(choice));
}

}  // namespace assay::cuda
