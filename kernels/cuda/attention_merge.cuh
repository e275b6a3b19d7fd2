// The parts of rows whose keys were cut into several pieces of work, put together (flash decoding):
//
//   m = maxᵢ mᵢ (and the sink);   out = Σᵢ 2^(mᵢ - m) oᵢ / (Σᵢ 2^(mᵢ - m) lᵢ + 2^(sink - m))
//
// in the order of their keys, whatever finished first. A part that saw no key has no m and counts nothing;
// the sink is counted here, once. Of one part the bits are those it would have had by itself.
#pragma once

#include "kernels/cuda/attention_tile.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kMergeThreads = 128;

// Grid: merges × key heads × rows of the tile. Block: columns.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 4) attention_merge(AttentionArgs a) {
  const MergeWork merge = a.merges[block_index().x];
  const SequenceArgs sequence = a.sequences[merge.sequence];
  const unsigned kv_head = block_index().y, in_tile = block_index().z;
  const RowPlace place = row_place(a, sequence, AttentionWork{}, kv_head, merge.first_row + in_tile);
  if (!place.exists) return;
  const auto slot = [&](unsigned part) { return partial_slot(a, merge.partial + part, kv_head, in_tile); };
  const auto maximum = [&](unsigned part) { return a.partial_stats[2 * slot(part)]; };
  const RowEnd end = end_of_row(
      merge.splits, maximum, [&](unsigned part) { return a.partial_stats[2 * slot(part) + 1]; },
      a.sinks == nullptr ? nullptr : a.sinks + place.head);
  for (unsigned column = thread_id(); column < a.v_dim; column += kThreads) {
    float sum = 0;
    constexpr unsigned kAtOnce = 8;  // asked for before the first is waited for
    for (unsigned first = 0; first < merge.splits; first += kAtOnce) {
      float outs[kAtOnce], tops[kAtOnce];
      ASSAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const bool there = first + i < merge.splits;
        outs[i] = there ? a.partial_out[slot(first + i) * a.v_dim + column] : 0.0f;
        tops[i] = there ? maximum(first + i) : kNoScore;
      }
      ASSAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (first + i < merge.splits) sum = fmaf(outs[i], share(tops[i], end.top), sum);
      }
    }
    store_result(a, sequence, place.query, place.head, column, sum * end.inverse);
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
