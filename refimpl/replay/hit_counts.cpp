#include "refimpl/replay/hit_counts.h"

#include <algorithm>

#include "refimpl/replay/trace_keys.h"

namespace assay {
namespace {

std::size_t kept_blocks(const TraceRequest& request, std::size_t block_tokens, CountingRule rule) {
  return rule == CountingRule::every_block ? request.blocks.size() : request.input / block_tokens;
}
std::size_t most_hits(const TraceRequest& request, std::size_t block_tokens, CountingRule rule) {
  return rule == CountingRule::every_block ? request.blocks.size() : (request.input - 1) / block_tokens;
}

}  // namespace

HitCounts count_hits(const Trace& trace, std::size_t capacity, CountingRule rule) {
  BlockPool pool(capacity != 0 ? capacity : std::max<std::size_t>(1, trace.distinct_blocks()));
  return count_hits(trace, pool, rule);
}

HitCounts count_hits(const Trace& trace, BlockPool& pool, CountingRule rule) {
  HitCounts counts;
  std::vector<BlockId> held;
  for (const TraceRequest& request : trace.requests) {
    counts.blocks += request.blocks.size();
    held.clear();
    const std::size_t most = most_hits(request, trace.block_tokens, rule);
    while (held.size() < most) {
      const auto found = pool.find(key_of(request.blocks[held.size()]), {}, {});
      if (!found) break;
      held.push_back(*found);
    }
    counts.hits += held.size();
    for (const BlockId block : held) pool.hold(block);
    const std::size_t kept = kept_blocks(request, trace.block_tokens, rule);
    while (held.size() < kept) {
      const auto block = pool.take();
      if (!block) break;  // longer than the whole cache: its end is not kept
      pool.know(*block, {key_of(request.blocks[held.size()]), {}, {}});
      held.push_back(*block);
    }
    pool.release_all(held);
  }
  counts.evictions = pool.evictions();
  return counts;
}

}  // namespace assay
