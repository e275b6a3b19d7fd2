// Faults that engines were shipped with, planted for rank_claims to find.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

enum class RankFault : std::uint8_t {
  none,
  replicated_heads,  // 42: heads = local × tp, though a key head is repeated (sglang#19086)
  layer_offset,      // 45: a stage counts its layers from stage · ⌊layers / pp⌋ (vllm-ascend#15900)
  reduction_order,   // 50: partial sums are added in another order from run to run (vllm#51290, vllm#45683)
  idle_rank_is_absent  // 51: a copy without texts takes no part in the experts' exchange (vllm#43547, vllm#51984)
};

}  // namespace assay
