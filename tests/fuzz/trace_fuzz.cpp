// A recorded workload from a stranger: what is accepted can be counted and simulated.
// link: assay_replay
#include "refimpl/replay/trace.h"

#include <sstream>

#include "refimpl/replay/hit_counts.h"
#include "refimpl/replay/simulate.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in{std::string(fuzz::as_text(data, size))};
  const auto trace = fuzz::accepted([&] { return parse_trace(in, "fuzz.jsonl"); });
  if (!trace) return 0;
  fuzz::require(!trace->requests.empty() && trace->requests.front().arrival == 0,
                "time begins with the first");
  if (trace->block_tokens != 0) {
    const HitCounts few = count_hits(*trace, 3, CountingRule::every_block),
                    all = count_hits(*trace, 0, CountingRule::every_block);
    fuzz::require(few.hits <= all.hits && all.hits <= all.blocks, "more capacity, no fewer hits");
  }
  SimulationOptions options;
  options.scheduler = {.blocks = 8, .block_tokens = trace->block_tokens == 0 ? 16 : trace->block_tokens};
  const SimulationCounts counts = simulate(*trace, options);
  fuzz::require(counts.finished + counts.refused + counts.rejected == trace->requests.size(),
                "every request is over in the end");
  return 0;
}
