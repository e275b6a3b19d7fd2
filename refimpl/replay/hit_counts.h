// How many blocks of a workload's prompts a prefix cache of some capacity has when they come: requests one after the
// other in the order of the file, least recently used blocks evicted, of a request the last block first.
#pragma once

#include "refimpl/engine/block_pool.h"
#include "refimpl/replay/trace.h"

namespace assay {

// every_block: all blocks of a prompt, the partly filled one too. engine: full blocks only, and never the last token
// (vLLM, and assay's engine).
enum class CountingRule : std::uint8_t { every_block, engine };

struct HitCounts {
  std::size_t blocks = 0, hits = 0, evictions = 0;
  double rate() const { return blocks == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(blocks); }
};
// `blocks` counts the prompts' blocks, whatever the rule. Capacity 0: everything is kept.
HitCounts count_hits(const Trace& trace, std::size_t capacity, CountingRule rule);
HitCounts count_hits(const Trace& trace, BlockPool& pool, CountingRule rule);

}  // namespace assay
