// The parts of rows whose keys were cut into several pieces of work, put together (flash decoding):
//
//   m = maxᵢ mᵢ (and the sink);   out = Σᵢ 2^(mᵢ - m) oᵢ / (Σᵢ 2^(mᵢ - m) lᵢ + 2^(sink - m))
//
// in an order of their own, whatever finished first. A part that saw no key has no m and counts nothing;
// the sink is counted here, once. Of one part the bits are those it would have had by itself.
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kMergeThreads = 128;

// A row's parts, of which a block puts one after the other together.
struct RowParts {
  const AttentionArgs& a;
  unsigned first, count;  // slots' partials
  unsigned kv_head, row;  // of the tile

  ASSAY_DEVICE std::uint64_t slot(unsigned part) const { return partial_slot(a, first + part, kv_head, row); }
  ASSAY_DEVICE float maximum(unsigned part) const { return a.partial_stats[2 * slot(part)]; }
  ASSAY_DEVICE float sum(unsigned part) const { return a.partial_stats[2 * slot(part) + 1]; }
  ASSAY_DEVICE const float* out(unsigned part) const { return a.partial_out + slot(part) * a.v_dim; }
};

// As end_of_row(), by a block: each thread asks for other parts' numbers, so that they are waited for together.
template <int kThreads>
ASSAY_DEVICE RowEnd end_of_parts(const RowParts& parts, const float* sink, float* shared) {
  const float sink_score = sink == nullptr ? kNoScore : *sink * kLog2E;
  RowEnd end = {sink_score, 0};
  for (unsigned i = thread_id(); i < parts.count; i += kThreads) end.top = fmaxf(end.top, parts.maximum(i));
  end.top = block_max<kThreads>(end.top, shared);
  for (unsigned i = thread_id(); i < parts.count; i += kThreads)
    end.sum = fmaf(parts.sum(i), share(parts.maximum(i), end.top), end.sum);
  end.sum = block_sum<kThreads>(end.sum, shared) + share(sink_score, end.top);
  end.inverse = end.sum == 0 ? 0.0f : 1.0f / end.sum;
  return end;
}

// What a block has in shared memory: shares of so many parts, and what its groups of threads have summed.
template <int kThreads>
struct MergeRoom {
  float shares[kThreads];
  Quad sums[kThreads];
};

// Four columns a thread, `count` fours from `first` on: as many groups of threads as a block has, each with its own parts,
// since a row has few columns and many parts. Group g sums parts g, g + groups, …, and the groups' sums are added up in order.
template <int kThreads>
ASSAY_DEVICE Quad sum_of_parts(const RowParts& parts, float top, unsigned first, unsigned count,
                               MergeRoom<kThreads>& room) {
  constexpr unsigned kAtOnce = 8;  // asked for before the first is waited for
  const unsigned groups = kThreads / count, group = thread_id() / count, column = thread_id() % count;
  const bool aligned = parts.a.v_dim % 4 == 0;
  Quad sum = {};
  for (unsigned begin = 0; begin < parts.count; begin += kThreads) {
    const unsigned here = parts.count - begin < kThreads ? parts.count - begin : kThreads;
    sync_block();  // all have read
    if (thread_id() < here) room.shares[thread_id()] = share(parts.maximum(begin + thread_id()), top);
    sync_block();
    for (unsigned next = group; group < groups && next < here; next += groups * kAtOnce) {
      Quad outs[kAtOnce];
      ASSAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const unsigned part = next + i * groups;
        outs[i] =
            part < here ? load_quad(parts.out(begin + part), aligned, first + column, parts.a.v_dim) : Quad{};
      }
      ASSAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (next + i * groups >= here) continue;
        const float factor = room.shares[next + i * groups];
        ASSAY_UNROLL
        for (unsigned e = 0; e < 4; ++e) sum.v[e] = fmaf(outs[i].v[e], factor, sum.v[e]);
      }
    }
  }
  room.sums[thread_id()] = sum;
  sync_block();
  for (unsigned g = 1; group == 0 && g < groups; ++g) {
    const Quad other = room.sums[g * count + column];
    ASSAY_UNROLL
    for (unsigned e = 0; e < 4; ++e) sum.v[e] += other.v[e];
  }
  return sum;
}

// Grid: merges × key heads × rows that a tile has at most.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 6) attention_merge(AttentionArgs a) {
  const MergeWork merge = a.merges[block_index().x];
  const SequenceArgs sequence = a.sequences[merge.sequence];
  const unsigned kv_head = block_index().y, in_tile = block_index().z;
  const RowPlace place = row_place(a, sequence, AttentionWork{}, kv_head, merge.first_row + in_tile);
  if (!place.exists) return;
  const RowParts parts = {a, merge.partial, merge.splits, kv_head, in_tile};
  auto& room = *shared_memory<MergeRoom<kThreads>>();
  const RowEnd end =
      end_of_parts<kThreads>(parts, a.sinks == nullptr ? nullptr : a.sinks + place.head, room.shares);
  const unsigned quads = (a.v_dim + 3) / 4;
  for (unsigned first = 0; first < quads; first += kThreads) {
    const unsigned count = quads - first < kThreads ? quads - first : kThreads;
    const Quad sum = sum_of_parts<kThreads>(parts, end.top, first, count, room);
    if (thread_id() >= count) continue;
    ASSAY_UNROLL
    for (unsigned e = 0; e < 4; ++e) {
      const unsigned column = 4 * (first + thread_id()) + e;
      if (column < a.v_dim)
        store_result(a, sequence, place.query, place.head, column, sum.v[e] * end.inverse);
    }
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
