// Absorbed MLA (DeepSeek-V2, §2.1): attention of all heads of a token over one shared row of the cache, of
// [latent | rotary part], 576 columns, whose first 512 are the value too. So a step's rows are loaded once,
// and are keys first and values then.
//
//   per step of `keys` rows of the cache, 8 warps, four barriers:
//     scores    warps share out (16 rows × 16 keys) of q cᵀ; where there are fewer of these than warps, each
//               is cut along the columns into score_parts sums
//     softmax   a warp takes whole rows: parts are added up, the largest is found, weights are written
//     values    a warp owns 16 rows × 64·kRowGroups columns of o in registers: o = correction · o + p c
//   while the next step's rows are on their way into the other half of the ring (stages 2).
//
// The order of every sum depends on the heads and the device alone: see plan_attention.h.
#pragma once

#include "kernels/cuda/attention_tile.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kMlaWarps = 8;
constexpr unsigned kMlaMostSteps = 4;  // of fragments, along the keys of a step

// The steps of a piece of work, through the ring.
template <class T>
class MlaRing {
 public:
  ASSAY_DEVICE MlaRing(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : a_(a), sequence_(sequence), work_(work), next_(work.key_begin / a.tiling.keys) {}

  // Meets a barrier before load_next().
  ASSAY_DEVICE void find_first_rows() { find_rows(next_); }
  // Loads the next step, if there is one.
  ASSAY_DEVICE void load_next() {
    const AttentionTiling& t = a_.tiling;
    if (next_ * t.keys < work_.key_end) {
      load();
      find_rows(++next_);
    }
    cp_async_commit();
  }
  // The rows of step `step`, for all threads of the block; those of the step before are given back.
  ASSAY_DEVICE const T* take(unsigned step) {
    if (a_.tiling.stages == 1) {
      sync_block();
      load_next();
      cp_async_wait<0>();
      sync_block();
    } else {
      cp_async_wait<0>();
      sync_block();
      load_next();
    }
    return slot(step);
  }

 private:
  ASSAY_DEVICE T* slot(unsigned step) {
    return shared_memory<T>(a_.tiling.ring) +
           step % a_.tiling.stages * (a_.tiling.keys * a_.tiling.key_pitch);
  }
  ASSAY_DEVICE std::int32_t* rows(unsigned step) {
    return shared_memory<std::int32_t>(a_.tiling.rows_found) + step % 2 * a_.tiling.keys;
  }
  ASSAY_DEVICE void find_rows(unsigned step) {
    if (thread_id() >= a_.tiling.keys) return;
    const unsigned position = step * a_.tiling.keys + thread_id();
    const bool there = position >= work_.key_begin && position < work_.key_end;
    rows(step)[thread_id()] = there ? row_of(sequence_.key_pages, sequence_.key_page_rows, position) : -1;
  }
  ASSAY_DEVICE void load() {
    constexpr unsigned kVector = TileMath<T>::kVector;
    const unsigned pitch = a_.tiling.key_pitch, vectors = (pitch - kVector) / kVector;
    const T* from = static_cast<const T*>(sequence_.keys);
    T* to = slot(next_);
    for (unsigned i = thread_id(); i < a_.tiling.keys * vectors; i += kMlaWarps * 32) {
      const unsigned r = i / vectors, c = i % vectors * kVector;
      const std::int32_t row = rows(next_)[r];
      const bool there = row >= 0 && c < a_.head_stride;
      cp_async16(to + r * pitch + c,
                 there ? from + static_cast<std::uint64_t>(row) * sequence_.key_stride + c : from, there);
    }
  }

  const AttentionArgs& a_;
  const SequenceArgs& sequence_;
  const AttentionWork& work_;
  unsigned next_;
};

// One warp's share of the scores of a step, as products, into shared memory.
template <class T, int kRowGroups>
ASSAY_DEVICE void latent_scores(const AttentionArgs& a, const T* keys) {
  using Math = TileMath<T>;
  constexpr unsigned kFlush = 64 / Math::kStep;  // steps within tensor cores
  const AttentionTiling& t = a.tiling;
  const unsigned key_groups = t.keys / 16, units = kRowGroups * key_groups * t.score_parts;
  const unsigned steps = (a.qk_dim + Math::kStep - 1) / Math::kStep;
  const unsigned steps_a_part = (steps + t.score_parts - 1) / t.score_parts;
  for (unsigned unit = warp_id(); unit < units; unit += kMlaWarps) {
    const unsigned row = unit % kRowGroups * 16, key = unit / kRowGroups % key_groups * 16;
    const unsigned part = unit / (kRowGroups * key_groups);
    const unsigned end = (part + 1) * steps_a_part < steps ? (part + 1) * steps_a_part : steps;
    float even[4] = {}, odd[4] = {};
    for (unsigned first = part * steps_a_part; first < end; first += kFlush) {
      float fresh_even[4] = {}, fresh_odd[4] = {};
      const unsigned last = first + kFlush < end ? first + kFlush : end;
      for (unsigned i = first; i < last; ++i) {
        const auto left = Math::left(shared_memory<T>() + row * t.q_pitch + i * Math::kStep, t.q_pitch);
        const auto right = Math::right_across(keys + key * t.key_pitch + i * Math::kStep, t.key_pitch);
        Math::multiply(left, right, fresh_even, fresh_odd);
      }
      ASSAY_UNROLL
      for (unsigned e = 0; e < 4; ++e) {
        even[e] += fresh_even[e];
        odd[e] += fresh_odd[e];
      }
    }
    float* to = shared_memory<float>(t.scores) + (part * t.rows + row + lane_id() / 4) * (t.keys + 4) + key +
                lane_id() % 4 * 2;
    ASSAY_UNROLL
    for (unsigned e = 0; e < 4; ++e) {
      float* at = to + e / 2 * 8 * (t.keys + 4) + e % 2;
      at[0] = even[e];
      at[8] = odd[e];
    }
  }
}

// What a warp remembers of one of its rows; `sum` is of a lane's own keys.
struct MlaRow {
  unsigned low = 0, high = 0;
  float m = kNoScore, sum = 0;
};

// Row `row`'s products become weights; how what was summed before shrinks goes to `corrections`.
template <class T>
ASSAY_DEVICE void latent_weights(const AttentionArgs& a, unsigned step, unsigned row, MlaRow& state) {
  const AttentionTiling& t = a.tiling;
  float x[2] = {kNoScore, kNoScore};
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned k = lane_id() + 32 * i, key = step * t.keys + k;
    if (k >= t.keys || key < state.low || key >= state.high) continue;
    const float* at = shared_memory<float>(t.scores) + row * (t.keys + 4) + k;
    float product = at[0];
    for (unsigned part = 1; part < t.score_parts; ++part) product += at[part * t.rows * (t.keys + 4)];
    x[i] = score_of(a, product);
  }
  float largest = fmaxf(state.m, fmaxf(x[0], x[1]));
  ASSAY_UNROLL
  for (unsigned mask = 16; mask != 0; mask /= 2) largest = fmaxf(largest, shuffle_xor(largest, mask));
  const float correction = share(state.m, base_of(largest));
  state.m = largest;
  float sum = 0;
  T* weights = shared_memory<T>(t.weights) + row * t.weight_pitch;
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned k = lane_id() + 32 * i;
    if (k >= t.keys) continue;
    const float p = fast_exp2(x[i] - base_of(largest));
    weights[k] = from_float<T>(p);
    sum += p;
  }
  state.sum = fmaf(state.sum, correction, sum);
  if (lane_id() == 0) shared_memory<float>(t.shares)[row] = correction;
}

// o = correction · o + p c for a warp's 16 rows and its columns.
template <class T, int kRowGroups>
ASSAY_DEVICE void latent_values(const AttentionArgs& a, const T* keys, unsigned first_row,
                                unsigned first_column, float (&o)[8 * kRowGroups][4]) {
  using Math = TileMath<T>;
  const AttentionTiling& t = a.tiling;
  const unsigned steps = t.keys / Math::kStep;
  typename Math::Left left[kMlaMostSteps] = {};
  const T* weights = shared_memory<T>(t.weights) + first_row * t.weight_pitch;
  ASSAY_UNROLL
  for (unsigned i = 0; i < kMlaMostSteps; ++i) {
    if (i < steps) left[i] = Math::left_weights(weights + i * Math::kStep, t.weight_pitch);
  }
  const float* corrections = shared_memory<float>(t.shares) + first_row + lane_id() / 4;
  const float correction[2] = {corrections[0], corrections[8]};
  ASSAY_UNROLL
  for (unsigned n = 0; n < 8 * kRowGroups; n += 2) {
    if (first_column + n * 8 >= a.v_dim) continue;
    float fresh[2][4] = {};
    ASSAY_UNROLL
    for (unsigned i = 0; i < kMlaMostSteps; ++i) {
      if (i >= steps) continue;
      const auto right =
          Math::right_down(keys + i * Math::kStep * t.key_pitch + first_column + n * 8, t.key_pitch);
      Math::multiply(left[i], right, fresh[0], fresh[1]);
    }
    ASSAY_UNROLL
    for (unsigned e = 0; e < 4; ++e) {
      o[n][e] = fmaf(o[n][e], correction[e / 2], fresh[0][e]);
      o[n + 1][e] = fmaf(o[n + 1][e], correction[e / 2], fresh[1][e]);
    }
  }
}

// A lane's part of one row, at the end; m and the sum of the row lie in shared memory.
template <int kRowGroups>
ASSAY_DEVICE void finish_mla_row(const AttentionArgs& a, const SequenceArgs& sequence,
                                 const AttentionWork& work, const float (&o)[8 * kRowGroups][4], unsigned row,
                                 unsigned first_column, unsigned half) {
  const float* shares = shared_memory<float>(a.tiling.shares);
  const float m = shares[a.tiling.rows + row], sum = shares[2 * a.tiling.rows + row];
  const RowPlace place = row_place(a, sequence, work, 0, work.first_row + row);
  if (!place.exists) return;
  const bool whole = work.partial == AttentionWork::kWhole;
  const std::uint64_t slot = whole ? 0 : partial_slot(a, work.partial, 0, row);
  RowEnd end = {0, 1};
  if (whole)
    end = end_of_row(
        1, [&](unsigned) { return m; }, [&](unsigned) { return sum; }, nullptr);
  const float factor = whole ? share(m, end.top) : 1.0f;
  if (!whole && first_column == 0 && lane_id() % 4 == 0) {
    a.partial_stats[2 * slot] = m;
    a.partial_stats[2 * slot + 1] = sum;
  }
  ASSAY_UNROLL
  for (unsigned n = 0; n < 8 * kRowGroups; ++n) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned column = first_column + n * 8 + lane_id() % 4 * 2 + e;
      if (column >= a.v_dim) continue;
      const float sums = o[n][2 * half + e];
      if (whole)
        store_result(a, sequence, place.query, place.head, column, sums * factor * end.inverse);
      else
        a.partial_out[slot * a.v_dim + column] = sums;
    }
  }
}

template <class T>
ASSAY_DEVICE void load_mla_queries(const AttentionArgs& a, const SequenceArgs& sequence,
                                   const AttentionWork& work) {
  constexpr unsigned kVector = TileMath<T>::kVector;
  const unsigned pitch = a.tiling.q_pitch, vectors = (pitch - kVector) / kVector;
  for (unsigned i = thread_id(); i < a.tiling.rows * vectors; i += kMlaWarps * 32) {
    const unsigned r = i / vectors, c = i % vectors * kVector;
    const RowPlace place = row_place(a, sequence, work, 0, work.first_row + r);
    const bool there = place.exists && c < a.head_stride;
    const T* from = static_cast<const T*>(a.q);
    if (there) from += (sequence.first + place.query) * a.q_stride + place.head * a.head_stride + c;
    cp_async16(shared_memory<T>() + r * pitch + c, from, there);
  }
}

// Grid: pieces of work. Block: 256 threads, 16 · kRowGroups rows.
template <class T, int kRowGroups>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(256, 1) mla_attention(AttentionArgs a) {
  const AttentionWork work = a.work[block_index().x];
  const SequenceArgs sequence = a.sequences[work.sequence];
  const unsigned first_row = warp_id() % kRowGroups * 16;                  // of this warp's values
  const unsigned first_column = warp_id() / kRowGroups * 64 * kRowGroups;  //
  MlaRing<T> ring(a, sequence, work);
  ring.find_first_rows();
  load_mla_queries<T>(a, sequence, work);
  sync_block();
  if (a.tiling.stages == 2) ring.load_next();

  MlaRow rows[2 * kRowGroups];  // rows warp, warp + 8 …
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2 * kRowGroups; ++i) {
    const RowPlace place = row_place(a, sequence, work, 0, work.first_row + warp_id() + kMlaWarps * i);
    rows[i].low = place.low;
    rows[i].high = place.high;
  }
  float o[8 * kRowGroups][4] = {};
  for (unsigned step = work.key_begin / a.tiling.keys; step * a.tiling.keys < work.key_end; ++step) {
    const T* keys = ring.take(step);
    latent_scores<T, kRowGroups>(a, keys);
    sync_block();
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kRowGroups; ++i)
      latent_weights<T>(a, step, warp_id() + kMlaWarps * i, rows[i]);
    sync_block();
    latent_values<T, kRowGroups>(a, keys, first_row, first_column, o);
  }
  float* shares = shared_memory<float>(a.tiling.shares);
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2 * kRowGroups; ++i) {
    float sum = rows[i].sum;
    ASSAY_UNROLL
    for (unsigned mask = 16; mask != 0; mask /= 2) sum += shuffle_xor(sum, mask);
    const unsigned row = warp_id() + kMlaWarps * i;
    if (lane_id() == 0) {
      shares[a.tiling.rows + row] = rows[i].m;
      shares[2 * a.tiling.rows + row] = sum;
    }
  }
  sync_block();
  finish_mla_row<kRowGroups>(a, sequence, work, o, first_row + lane_id() / 4, first_column, 0);
  finish_mla_row<kRowGroups>(a, sequence, work, o, first_row + lane_id() / 4 + 8, first_column, 1);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
