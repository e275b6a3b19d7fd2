// The parts of rows whose keys were cut into several pieces of work, put together (flash decoding):
//
//   m = maxᵢ mᵢ (and the sink);   out = Σᵢ 2^(mᵢ - m) oᵢ / (Σᵢ 2^(mᵢ - m) lᵢ + 2^(sink - m))
//
// in the order of their keys, whatever finished first. A part that saw no key has no m and counts nothing;
// the sink is counted here, once. Of one part the bits are those it would have had by itself.
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kMergeThreads = 128;

// As end_of_row(), by a block: each thread asks for other parts' numbers, so that they are waited for together; they are
// summed in the same order.
template <int kThreads, class MaximumOf, class SumOf>
ASSAY_DEVICE RowEnd end_of_parts(unsigned parts, MaximumOf maximum_of, SumOf sum_of, const float* sink) {
  float *shares = shared_memory<float>(), *sums = shares + kThreads;
  const float sink_score = sink == nullptr ? kNoScore : *sink * kLog2E;
  RowEnd end = {sink_score, 0};
  for (unsigned i = thread_id(); i < parts; i += kThreads) end.top = fmaxf(end.top, maximum_of(i));
  end.top = block_max<kThreads>(end.top, shares);
  for (unsigned first = 0; first < parts; first += kThreads) {
    const unsigned i = first + thread_id(), count = parts - first < kThreads ? parts - first : kThreads;
    if (first != 0) sync_block();  // all have read
    if (i < parts) {
      shares[thread_id()] = share(maximum_of(i), end.top);
      sums[thread_id()] = sum_of(i);
    }
    sync_block();
    for (unsigned part = 0; part < count; ++part) end.sum = fmaf(sums[part], shares[part], end.sum);
  }
  end.sum += share(sink_score, end.top);
  end.inverse = end.sum == 0 ? 0.0f : 1.0f / end.sum;
  return end;
}

// Grid: merges × key heads × rows that a tile has at most. Block: columns.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 4) attention_merge(AttentionArgs a) {
  const MergeWork merge = a.merges[block_index().x];
  const SequenceArgs sequence = a.sequences[merge.sequence];
  const unsigned kv_head = block_index().y, in_tile = block_index().z;
  const RowPlace place = row_place(a, sequence, AttentionWork{}, kv_head, merge.first_row + in_tile);
  if (!place.exists) return;
  const auto slot = [&](unsigned part) { return partial_slot(a, merge.partial + part, kv_head, in_tile); };
  const auto maximum = [&](unsigned part) { return a.partial_stats[2 * slot(part)]; };
  const RowEnd end = end_of_parts<kThreads>(
      merge.splits, maximum, [&](unsigned part) { return a.partial_stats[2 * slot(part) + 1]; },
      a.sinks == nullptr ? nullptr : a.sinks + place.head);
  for (unsigned column = thread_id(); column < a.v_dim; column += kThreads) {
    float sum = 0;
    constexpr unsigned kAtOnce = 16;  // asked for before the first is waited for
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
