// Attention of sequences that have one query each: no tile to pack keys for, and every key and value is read once from
// memory, which sets the pace. So a row of the cache, the keys of several heads side by side, is read in one go.
//
// scores s = q · k by head, in vector lanes; under their largest, and the weights e^(s - max) / Σ e^(s - max) of the
// values, summed key by key. A head's result depends on nothing but its sequence.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

// Keys whose values are added up at a time.
inline constexpr std::size_t kDecodeKeys = 8;

// `sinks`: of all heads, or none. Without slopes.
void attend_decoding(const AttentionCall& call, std::span<const std::size_t> sequences,
                     std::span<const float> sinks, const Matrix& out, int jobs);

}  // namespace assay::cpu
