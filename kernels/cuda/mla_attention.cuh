// Absorbed MLA (DeepSeek-V2, §2.1): attention of all heads of a token over one shared row of the cache, of
// [latent | rotary part], 576 columns, whose first 512 are the value too. So a step's rows are loaded once,
// and are keys first and values then.
//
//   per step of `keys` rows of the cache, 8 warps, three barriers:
//     scores    a warp takes its rows' products over its part of the columns; the queries of these are in its
//               registers from the beginning to the end, so that of a step only the cache is read
//     softmax   a warp takes whole rows, several at once: parts are added up, the largest is found, weights are written
//     values    a warp owns its rows × its part of the columns of o in registers: o = correction · o + p c
//   while the next steps' rows are on their way into the rest of the ring.
//
// Shared memory carries least where a warp's tile is neither tall nor wide: docs/cuda.md counts its bytes.
// The order of every sum depends on the heads and the device alone: see plan_attention.h.
#pragma once

#include "kernels/cuda/mla_ring.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// How the warps share out a tile of 16 · kRowGroups rows: kAcross side by side over its rows, each with kGroups
// fragments of 16, and kParts over the columns: of scores these are the terms, of values the results.
template <class T, int kRowGroups, int kKeys>
struct MlaShares {
  static constexpr unsigned kAcross = kRowGroups == 1 ? 1 : 2, kGroups = kRowGroups / kAcross;
  static constexpr unsigned kParts = kMlaWarps / kAcross;
  static constexpr unsigned kSteps = (kMostLatentKey / TileMath<T>::kStep + kParts - 1) / kParts;
  static constexpr unsigned kTiles = kMostLatent / 8 / kParts;  // of 8 columns of values
  static constexpr unsigned kWeightSteps = kKeys / TileMath<T>::kStep;
  static constexpr unsigned kScorePitch = kKeys + kScorePad;
};

// Of the tile's rows, in shared memory, where no register is held for them: how what was summed before shrinks in this
// step, the largest score so far, the sum of weights relative to it, and the key before which a row sees all.
struct MlaRows {
  float *corrections, *m, *sum;
  std::uint32_t* high;
  ASSAY_DEVICE explicit MlaRows(const AttentionTiling& t)
      : corrections(shared_memory<float>(t.shares)),
        m(corrections + t.rows),
        sum(m + t.rows),
        high(shared_memory<std::uint32_t>(t.shares) + 3 * t.rows) {}

  // No window hides keys from below: a piece's steps begin with the first that is seen.
  ASSAY_DEVICE void begin(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work) {
    const unsigned row = thread_id();
    if (row >= a.tiling.rows) return;
    m[row] = kNoScore;
    sum[row] = 0;
    high[row] = row_place(a, sequence, work, 0, work.first_row + row).high;
  }
};

// What a warp has of its tile: queries, as fragments' words, and sums of values.
template <class T, int kRowGroups, int kKeys>
class MlaWarp {
  using Math = TileMath<T>;
  using Shares = MlaShares<T, kRowGroups, kKeys>;
  static constexpr unsigned kGroups = Shares::kGroups, kSteps = Shares::kSteps, kTiles = Shares::kTiles;

 public:
  ASSAY_DEVICE explicit MlaWarp(const AttentionArgs& a) : a_(a) {
    const unsigned all = (a.qk_dim + Math::kStep - 1) / Math::kStep;
    first_step_ = part_ * all / Shares::kParts;
    steps_ = (part_ + 1) * all / Shares::kParts - first_step_;
  }

  // From global memory, once. A fragment is words t and t + 4 of 32 bytes of rows g and g + 8, whatever T is.
  ASSAY_DEVICE void hold_queries(const SequenceArgs& sequence, const AttentionWork& work) {
    const unsigned words = a_.head_stride * static_cast<unsigned>(sizeof(T)) / 4;
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kGroups; ++i) {
      const RowPlace place = row_place(a_, sequence, work, 0, work.first_row + row_of_tile(i / 2, i % 2));
      const T* row = static_cast<const T*>(a_.q);
      if (place.exists) row += (sequence.first + place.query) * a_.q_stride + place.head * a_.head_stride;
      ASSAY_UNROLL
      for (unsigned step = 0; step < kSteps; ++step) {
        ASSAY_UNROLL
        for (unsigned j = 0; j < 2; ++j) {
          const unsigned word = (first_step_ + step) * 8 + lane_id() % 4 + 4 * j;
          const bool there = place.exists && step < steps_ && word < words;
          q_[i / 2][step][i % 2 + 2 * j] = there ? load_word(row + word * (4 / sizeof(T))) : 0;
        }
      }
    }
  }

  // Products with a step's keys, into shared memory.
  ASSAY_DEVICE void scores(const T* keys) const {
    if (steps_ == kSteps)
      part_of_scores<true>(keys);
    else
      part_of_scores<false>(keys);
  }

  // o = correction · o + p c.
  ASSAY_DEVICE void values(const T* keys) {
    const AttentionTiling& t = a_.tiling;
    typename Math::Left left[kGroups][Shares::kWeightSteps];
    float correction[kGroups][2];
    ASSAY_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      const T* weights = shared_memory<T>(t.weights) + (first_row_ + 16 * g) * t.weight_pitch;
      ASSAY_UNROLL
      for (unsigned i = 0; i < Shares::kWeightSteps; ++i)
        left[g][i] = Math::left_weights(weights + i * Math::kStep, t.weight_pitch);
      const float* corrections = MlaRows(t).corrections + row_of_tile(g, 0);
      correction[g][0] = corrections[0];
      correction[g][1] = corrections[8];
    }
    ASSAY_UNROLL
    for (unsigned n = 0; n < kTiles; n += 2) {
      const unsigned column = first_column_ + n * 8;
      if (column >= a_.v_dim) continue;
      float fresh[kGroups][2][4] = {};
      ASSAY_UNROLL
      for (unsigned i = 0; i < Shares::kWeightSteps; ++i) {
        const auto right = Math::right_down(keys + i * Math::kStep * t.key_pitch + column, t.key_pitch);
        ASSAY_UNROLL
        for (unsigned g = 0; g < kGroups; ++g) Math::multiply(left[g][i], right, fresh[g][0], fresh[g][1]);
      }
      ASSAY_UNROLL
      for (unsigned g = 0; g < kGroups; ++g) {
        ASSAY_UNROLL
        for (unsigned e = 0; e < 8; ++e) {
          float& sum = o_[g][n + e / 4][e % 4];
          sum = fmaf(sum, correction[g][e % 4 / 2], fresh[g][e / 4][e % 4]);
        }
      }
    }
  }

  // At the end; m and the sums of rows lie in shared memory.
  ASSAY_DEVICE void finish(const SequenceArgs& sequence, const AttentionWork& work) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kGroups; ++i) finish_row(sequence, work, i / 2, i % 2);
  }

 private:
  // Row lane / 4 of half `half` of fragment `group`, as a row of the block's tile.
  ASSAY_DEVICE unsigned row_of_tile(unsigned group, unsigned half) const {
    return first_row_ + 16 * group + 8 * half + lane_id() / 4;
  }

  template <bool kWhole>
  ASSAY_DEVICE void part_of_scores(const T* keys) const {
    constexpr unsigned kFlush = 64 / Math::kStep;  // steps within tensor cores
    const unsigned pitch = a_.tiling.key_pitch;
    ASSAY_UNROLL
    for (unsigned key = 0; key < kKeys; key += 16) {
      float sums[kGroups][2][4] = {};
      ASSAY_UNROLL
      for (unsigned first = 0; first < kSteps; first += kFlush) {
        sync_warp();  // keys further on are not asked for yet: there are no registers for them
        float fresh[kGroups][2][4] = {};
        ASSAY_UNROLL
        for (unsigned i = first; i < first + kFlush && i < kSteps; ++i) {
          if (!kWhole && i >= steps_) continue;
          const auto right = Math::right_across(keys + key * pitch + (first_step_ + i) * Math::kStep, pitch);
          ASSAY_UNROLL
          for (unsigned g = 0; g < kGroups; ++g)
            Math::multiply(Math::left_of(q_[g][i]), right, fresh[g][0], fresh[g][1]);
        }
        ASSAY_UNROLL
        for (unsigned g = 0; g < kGroups; ++g) {
          ASSAY_UNROLL
          for (unsigned e = 0; e < 8; ++e) sums[g][e / 4][e % 4] += fresh[g][e / 4][e % 4];
        }
      }
      store_scores(key, sums);
    }
  }
  ASSAY_DEVICE void store_scores(unsigned key, const float (&sums)[kGroups][2][4]) const {
    const AttentionTiling& t = a_.tiling;
    ASSAY_UNROLL
    for (unsigned i = 0; i < 4 * kGroups; ++i) {
      const unsigned half = i % 2, tile = i / 2 % 2;
      float* row = shared_memory<float>(t.scores) +
                   (part_ * (16 * kRowGroups) + row_of_tile(i / 4, half)) * Shares::kScorePitch;
      const float(&four)[4] = sums[i / 4][tile];
      *reinterpret_cast<Pair*>(row + key + 8 * tile +
                               lane_id() % 4 * 2) = {{four[2 * half], four[2 * half + 1]}};
    }
  }

  ASSAY_DEVICE void finish_row(const SequenceArgs& sequence, const AttentionWork& work, unsigned group,
                               unsigned half) const {
    const unsigned row = row_of_tile(group, half);
    const MlaRows rows(a_.tiling);
    const float m = rows.m[row], sum = rows.sum[row];
    const RowPlace place = row_place(a_, sequence, work, 0, work.first_row + row);
    if (!place.exists) return;
    const bool whole = work.partial == AttentionWork::kWhole;
    const std::uint64_t slot = whole ? 0 : partial_slot(a_, work.partial, 0, row);
    RowEnd end = {0, 1};
    if (whole)
      end = end_of_row(
          1, [&](unsigned) { return m; }, [&](unsigned) { return sum; }, nullptr);
    const float factor = whole ? share(m, end.top) : 1.0f;
    if (!whole && first_column_ == 0 && lane_id() % 4 == 0) {
      a_.partial_stats[2 * slot] = m;
      a_.partial_stats[2 * slot + 1] = sum;
    }
    ASSAY_UNROLL
    for (unsigned n = 0; n < kTiles; ++n) {
      ASSAY_UNROLL
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned column = first_column_ + n * 8 + lane_id() % 4 * 2 + e;
        if (column >= a_.v_dim) continue;
        const float sums = o_[group][n][2 * half + e];
        if (whole)
          store_result(a_, sequence, place.query, place.head, column, sums * factor * end.inverse);
        else
          a_.partial_out[slot * a_.v_dim + column] = sums;
      }
    }
  }

  const AttentionArgs& a_;
  const unsigned part_ = warp_id() / Shares::kAcross;
  const unsigned first_row_ = warp_id() % Shares::kAcross * (16 * kGroups);
  const unsigned first_column_ = part_ * (8 * kTiles);  // of values
  unsigned first_step_ = 0, steps_ = 0;                 // of scores
  std::uint32_t q_[kGroups][kSteps][4];
  float o_[kGroups][kTiles][4] = {};
};

// Products become weights, a row's by kKeys / 4 lanes with four keys each: a warp has several rows at once, whose steps
// of largest and sum are half as many as if a lane had one key, and are not waited for row by row.
template <class T, int kRowGroups, int kKeys>
ASSAY_DEVICE void latent_weights(const AttentionArgs& a, unsigned step) {
  using Shares = MlaShares<T, kRowGroups, kKeys>;
  constexpr unsigned kOfALane = 4, kLanes = kKeys / kOfALane, kAtOnce = 32 / kLanes,
                     kOfAWarp = 2 * kRowGroups;
  const MlaRows rows(a.tiling);
  const unsigned first = lane_id() % kLanes * kOfALane;
  ASSAY_NO_UNROLL
  for (unsigned i = 0; i < kOfAWarp; i += kAtOnce) {
    const unsigned mine = i + lane_id() / kLanes;
    const bool there = mine < kOfAWarp;
    const unsigned row = warp_id() * kOfAWarp + (there ? mine : 0);
    const float before = rows.m[row];
    const float* at = shared_memory<float>(a.tiling.scores) + row * Shares::kScorePitch + first;
    float scores[kOfALane], largest = before;
    ASSAY_UNROLL
    for (unsigned k = 0; k < kOfALane; ++k) {
      float product = at[k];
      ASSAY_UNROLL
      for (unsigned part = 1; part < Shares::kParts; ++part)
        product += at[part * (16 * kRowGroups * Shares::kScorePitch) + k];
      // Of latents no score is capped.
      scores[k] = step * kKeys + first + k < rows.high[row] ? product * a.score_factor : kNoScore;
      largest = fmaxf(largest, scores[k]);
    }
    ASSAY_UNROLL
    for (unsigned mask = kLanes / 2; mask != 0; mask /= 2)
      largest = fmaxf(largest, shuffle_xor(largest, mask));
    float sum = 0;
    ASSAY_UNROLL
    for (unsigned k = 0; k < kOfALane; ++k) {
      const float p = fast_exp2(scores[k] - base_of(largest));
      if (there)
        shared_memory<T>(a.tiling.weights)[row * a.tiling.weight_pitch + first + k] = from_float<T>(p);
      sum += p;
    }
    ASSAY_UNROLL
    for (unsigned mask = kLanes / 2; mask != 0; mask /= 2) sum += shuffle_xor(sum, mask);
    sync_warp();  // all lanes have read what its first one writes
    if (!there || lane_id() % kLanes != 0) continue;
    const float correction = share(before, base_of(largest));
    rows.corrections[row] = correction;
    rows.m[row] = largest;
    rows.sum[row] = fmaf(rows.sum[row], correction, sum);
  }
}

// A piece of work.
template <class T, int kRowGroups, int kKeys, class Ring>
ASSAY_DEVICE void attend_latents(const AttentionArgs& a) {
  // Read where they lie whenever they are needed: registers are for queries and sums.
  const AttentionWork& work = a.work[block_index().x];
  const SequenceArgs& sequence = a.sequences[work.sequence];
  Ring ring(a, sequence, work);
  ring.start();
  MlaWarp<T, kRowGroups, kKeys> warp(a);
  warp.hold_queries(sequence, work);

  MlaRows(a.tiling).begin(a, sequence, work);
  for (unsigned step = work.key_begin / kKeys; step * kKeys < work.key_end; ++step) {
    const T* keys = ring.take();
    warp.scores(keys);
    sync_block();
    latent_weights<T, kRowGroups, kKeys>(a, step);
    sync_block();
    warp.values(keys);
    ring.give_back();
  }
  ring.finish();
  warp.finish(sequence, work);
}

// Grid: pieces of work. Block: 256 threads, 16 · kRowGroups rows, steps of kKeys keys.
template <class T, int kRowGroups, int kKeys>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(256, 1) mla_attention(AttentionArgs a) {
  attend_latents<T, kRowGroups, kKeys, MlaRing<T>>(a);
}

// The same in clusters of two blocks, whose pieces are of the same keys.
template <class T, int kRowGroups>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(256, 1) mla_attention_pair(AttentionArgs a) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  attend_latents<T, kRowGroups, MlaPairRing<T>::kRows, MlaPairRing<T>>(a);
#else
  __trap();  // planned for sm_90 alone, where it is compiled as sm_90a
#endif
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
