// Launches of kernels that reduce a row: norms, softmax.

#include "kernels/cuda/norm.h"
#include "kernels/cuda/plan_words.h"
#include "kernels/cuda/softmax.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostNormedByAWarp = 1024;  // columns: 32 floats a thread
constexpr std::size_t kKeptNowhere = 29'000;      // columns, of which no architecture's SM keeps two rows
constexpr std::size_t kSumsBytes = 128;           // a float for each of at most 32 warps
constexpr unsigned kNormRegisters = 40;

struct Rows {
  const char* kernel;
  const char* one;  // "group", "row"
  std::size_t count, columns;
};

LaunchPlan plan_rows(const DeviceLimits& limits, const Rows& rows) {
  LaunchChoice choice = {.kernel = rows.kernel, .registers = kNormRegisters};
  if (rows.columns <= kMostNormedByAWarp) {
    choice.team = RowTeam::warp;
    choice.variant = said("a warp a {}", rows.one);
    choice.threads = 128;
    choice.grid.x = static_cast<unsigned>(blocks_for(rows.count, 4));
    choice.why = said("a warp reads {} columns at once", rows.columns);
    return checked_plan(limits, std::move(choice));
  }
  choice.threads = 256;
  choice.grid.x = static_cast<unsigned>(rows.count);
  const std::size_t kept = kSumsBytes + blocks_for(rows.columns, 4) * 16;
  // Kept, a row is read once; but fewer than two blocks an SM would wait for memory with nothing else to do.
  if (resident_blocks(limits, choice.threads, kept, kNormRegisters) >= 2) {
    choice.team = RowTeam::block_that_keeps;
    choice.variant = said("a block a {}, kept", rows.one);
    choice.shared_bytes = kept;
    choice.why = said("{} columns stay in shared memory between the passes", rows.columns);
  } else {
    choice.variant = said("a block a {}, read again", rows.one);
    choice.shared_bytes = kSumsBytes;
    choice.why = said("{} columns are too many to be kept by two blocks of an SM", rows.columns);
  }
  return checked_plan(limits, std::move(choice));
}

}  // namespace

Edges row_edges() {
  return {{.of = "n", .every = 32},  // a lane each, four at a time where that ends even
          {.of = "n", .from = kMostNormedByAWarp + 1},
          {.of = "n", .from = kKeptNowhere}};
}

LaunchPlan plan_rms_norm(const DeviceLimits& limits, const NormShape& shape) {
  return plan_rows(limits, {"rms_norm", "group", shape.count, shape.group});
}
LaunchPlan plan_layer_norm(const DeviceLimits& limits, const NormShape& shape) {
  return plan_rows(limits, {"layer_norm", "group", shape.count, shape.group});
}
LaunchPlan plan_softmax(const DeviceLimits& limits, const SoftmaxShape& shape) {
  return plan_rows(limits, {"softmax", "row", shape.rows, shape.columns});
}

}  // namespace assay::cuda
