// Absorbed MLA of DeepSeek's widths, rows of the cache [latent 512 | rotary part 64], in bfloat16 on Hopper's
// warpgroups (after FlashMLA). 64 rows of queries and heads a block, steps of 32 keys:
//
//   warpgroup 0   scores = q keysᵀ, softmax;   o = correction · o + p c, of columns 0 … 255
//   warpgroup 1                                the same of columns 256 … 511
//   warpgroup 2   has the copy engine bring rows, float32 as they lie in the cache, and lays them down as bfloat16
//
// A step's rows lie as nine tiles of 32 keys × 64 columns, swizzled as wgmma wants them. Across, a tile's rows are
// the columns of the scores; down, they are the terms of p c. So a row of the cache comes from memory once for 64
// rows of queries, and is packed nowhere.
//
// To keep an SM's share of an H200's 4.8 TB/s coming, some 18 bytes a clock, through 1,800 clocks of latency takes 33 KB
// under way. Registers have no room for that beside the sums, so that rows come into shared memory: 55 to 74 KB of
// them. What a step moves there, of 128 bytes a clock: 74 KB come, are read, and are laid down as 37 KB; scores read 108
// KB, values 48 KB: 2,700 clocks, where memory takes 4,100 (8,200 of 128 heads' two tiles together).
//
// Scores are sums of 576 terms within tensor cores, which cut each of 36 steps off at 2^-23 of the sum at most: 2^-17.8
// beside bfloat16's 2^-9. Values are sums of 32, added in float32. What a row gets depends on its own keys alone: steps
// begin at multiples of 32.
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/mbarrier.cuh"
#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// Where things lie in shared memory: attention_args.h.
constexpr unsigned kMlaRowTile = MlaWgmmaRoom::kRowTile, kMlaKeyTile = MlaWgmmaRoom::kKeyTile;
constexpr unsigned kMlaTiles = MlaWgmmaRoom::kTiles, kMlaStages = MlaWgmmaRoom::kSteps;
constexpr unsigned kMlaKeys = MlaWgmmaRoom::kKeys, kMlaRows = MlaWgmmaRoom::kRows;

ASSAY_DEVICE unsigned char* mla_queries() {
  return shared_memory<unsigned char>(MlaWgmmaRoom::kQueries);
}
ASSAY_DEVICE unsigned char* mla_step(unsigned place) {
  return shared_memory<unsigned char>(MlaWgmmaRoom::kRing + place * kMlaTiles * kMlaKeyTile);
}
ASSAY_DEVICE unsigned char* mla_weights() {
  return shared_memory<unsigned char>(MlaWgmmaRoom::kWeights);
}
// Of the tile's rows, [kMlaRows] each: how what was summed before shrinks in this step; at the end the largest score
// and the sum of weights relative to it.
ASSAY_DEVICE float* mla_corrections() {
  return shared_memory<float>(MlaWgmmaRoom::kShares);
}
ASSAY_DEVICE float* mla_largest() {
  return mla_corrections() + kMlaRows;
}
ASSAY_DEVICE float* mla_sums() {
  return mla_corrections() + 2 * kMlaRows;
}
// full: the warps that lay down; empty: the warps that multiply; raw: of so many bytes, of a warp's first or last four rows.
ASSAY_DEVICE Mbarrier* mla_full(unsigned place) {
  return shared_memory<Mbarrier>(MlaWgmmaRoom::kBarriers) + place;
}
ASSAY_DEVICE Mbarrier* mla_empty(unsigned place) {
  return shared_memory<Mbarrier>(MlaWgmmaRoom::kBarriers) + kMlaStages + place;
}
ASSAY_DEVICE Mbarrier* mla_raw(unsigned four) {
  return shared_memory<Mbarrier>(MlaWgmmaRoom::kBarriers) + 2 * kMlaStages + four;
}
// Byte of 16-byte chunk `chunk` of row `row` of a tile.
ASSAY_DEVICE unsigned mla_chunk(unsigned row, unsigned chunk) {
  return row * 128 +
         static_cast<unsigned>(Swizzle128::chunk(static_cast<int>(row), static_cast<int>(chunk))) * 16;
}

// Barriers of the warpgroups that multiply: weights of a step.
constexpr unsigned kMlaWritten = 1, kMlaRead = 2;

// A place in the ring, and how often it has come round: 0 or 1.
struct MlaPlace {
  unsigned stage = 0, phase = 0;
  ASSAY_DEVICE void next() {
    stage ^= 1;
    if (stage == 0) phase ^= 1;
  }
};

// The tile's queries, by the warpgroups that multiply; zeros where there is no row. Many are asked for before the first is
// waited for.
ASSAY_DEVICE void hold_mla_queries(const AttentionArgs& a, const SequenceArgs& sequence,
                                   const AttentionWork& work) {
  constexpr unsigned kChunks = kMostLatentKey / 8, kOfAThread = kMlaRows * kChunks / 256, kAtOnce = 9;
  static_assert(kOfAThread % kAtOnce == 0);
  ASSAY_NO_UNROLL
  for (unsigned first = 0; first < kOfAThread; first += kAtOnce) {
    Quad chunks[kAtOnce];
    ASSAY_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) {
      const unsigned i = thread_id() + 256 * (first + j), row = i / kChunks, chunk = i % kChunks;
      const RowPlace place = row_place(a, sequence, work, 0, work.first_row + row);
      const bf16* from = static_cast<const bf16*>(a.q);
      if (place.exists)
        from += (sequence.first + place.query) * a.q_stride + place.head * a.head_stride + chunk * 8;
      chunks[j] = load_once<Quad>(from, place.exists);
    }
    ASSAY_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) {
      const unsigned i = thread_id() + 256 * (first + j), row = i / kChunks, chunk = i % kChunks;
      *reinterpret_cast<Quad*>(mla_queries() + chunk / 8 * kMlaRowTile + mla_chunk(row, chunk % 8)) =
          chunks[j];
    }
  }
  shared_to_wgmma();
}

// The warps that bring. Each has eight of a step's rows, in two fours: while one is laid down the other is under way, and
// with it those of the other warps.
class MlaKeys {
  static constexpr unsigned kFour = 4, kOfAWarp = 2 * kFour, kQuads = kMostLatentKey / 4;

 public:
  ASSAY_DEVICE MlaKeys(const SequenceArgs& sequence, const AttentionWork& work)
      : sequence_(sequence), begin_(work.key_begin), end_(work.key_end) {}

  ASSAY_DEVICE void bring() {
    unsigned step = begin_ / kMlaKeys, raw_phase = 0;
    std::int32_t next = find_row(step);
    for (unsigned half = 0; half < 2; ++half) ask(half, next);
    MlaPlace place;
    for (; step * kMlaKeys < end_; ++step) {
      const std::int32_t rows = next;
      next = find_row(step + 1);
      mbarrier_wait(mla_empty(place.stage), place.phase ^ 1);
      ASSAY_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        mbarrier_wait(mla_raw(2 * warp() + half), raw_phase);
        lay_down(half, rows, place.stage);
        sync_warp();  // all have read
        if ((step + 1) * kMlaKeys < end_) ask(half, next);
      }
      raw_phase ^= 1;
      shared_to_wgmma();
      sync_warp();
      if (lane_id() == 0) mbarrier_arrive(mla_full(place.stage));
      place.next();
    }
  }

 private:
  ASSAY_DEVICE unsigned warp() const { return warp_id() % 4; }
  // Of a step, this warp's row lane % 8; -1: there is none.
  ASSAY_DEVICE std::int32_t find_row(unsigned step) const {
    const unsigned position = step * kMlaKeys + warp() * kOfAWarp + lane_id() % kOfAWarp;
    if (position < begin_ || position >= end_) return -1;
    return row_of(sequence_.key_pages, sequence_.key_page_rows, position);
  }
  ASSAY_DEVICE unsigned char* raw(unsigned row) const {
    return shared_memory<unsigned char>(MlaWgmmaRoom::kRaw +
                                        (warp() * kOfAWarp + row) * MlaWgmmaRoom::kRawRow);
  }

  // Lanes 0 … 3 ask for a row each.
  ASSAY_DEVICE void ask(unsigned half, std::int32_t found) const {
    const std::int32_t row = shuffle_idx(found, half * kFour + lane_id() % kFour);
    const bool there = row >= 0 && lane_id() < kFour;
    const unsigned there_are = ballot(there);
    unsigned count = 0;
    ASSAY_UNROLL
    for (unsigned i = 0; i < kFour; ++i) count += there_are >> i & 1;
    Mbarrier* const barrier = mla_raw(2 * warp() + half);
    if (lane_id() == 0) mbarrier_expect(barrier, count * MlaWgmmaRoom::kRawRow);
    sync_warp();  // it expects them before they come
    if (!there) return;
    const float* from =
        static_cast<const float*>(sequence_.keys) + static_cast<std::uint32_t>(row) * sequence_.key_stride;
    copy_row(raw(half * kFour + lane_id()), from, MlaWgmmaRoom::kRawRow, barrier);
  }

  // A row's 144 quads: four and a half a lane.
  ASSAY_DEVICE void lay_down(unsigned half, std::int32_t found, unsigned stage) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < kFour; ++i) {
      const unsigned in_warp = half * kFour + i, row = warp() * kOfAWarp + in_warp;
      const bool there = shuffle_idx(found, in_warp) >= 0;
      ASSAY_UNROLL
      for (unsigned k = 0; k < (kQuads + 31) / 32; ++k) {
        const unsigned quad = lane_id() + 32 * k;
        if (quad >= kQuads) continue;
        // Of rows behind the last key: weights are 0, and what they are multiplied with must be numbers.
        const Quad q = there ? reinterpret_cast<const Quad*>(raw(in_warp))[quad] : Quad{};
        unsigned char* at = mla_step(stage) + quad / 16 * kMlaKeyTile + mla_chunk(row, quad % 16 / 2);
        *reinterpret_cast<WordPair*>(at +
                                     quad % 2 * 8) = {{pack_bf16(q.v[0], q.v[1]), pack_bf16(q.v[2], q.v[3])}};
      }
    }
  }

  const SequenceArgs& sequence_;
  const unsigned begin_, end_;
};

// A warpgroup that multiplies: it has 256 columns of the results of all rows. Of a thread's sums, element e of four is
// of row `row(e / 2)`, columns 8 j + 2 (lane % 4) + e % 2.
class MlaGroup {
 public:
  ASSAY_DEVICE MlaGroup(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : a_(a), sequence_(sequence), work_(work) {}

  // o = correction · o + p c of the step at `place`, half of the columns after the other.
  ASSAY_DEVICE void values(unsigned place) {
    const float correction[2] = {mla_corrections()[row(0)], mla_corrections()[row(1)]};
    const SharedOperand weights = shared_operand(mla_weights());
    ASSAY_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      const DownOperand columns =
          down_operand(mla_step(place) + (group_ * 4 + half * 2) * kMlaKeyTile, kMlaKeyTile);
      float fresh[64] = {};
      wgmma_fence(fresh);
      ASSAY_UNROLL
      for (int k = 0; k < static_cast<int>(kMlaKeys / 16); ++k)
        wgmma_m64n128_down<bf16>(queue_, fresh, weights.at(k), columns.at(k), k != 0);
      wgmma_commit(queue_);
      wgmma_wait<0>(queue_, fresh);
      ASSAY_UNROLL
      for (unsigned i = 0; i < 64; ++i) o_[half][i] = fmaf(o_[half][i], correction[i / 2 % 2], fresh[i]);
    }
  }

  ASSAY_DEVICE void give_back(unsigned place) const {
    sync_warp();
    if (lane_id() == 0) mbarrier_arrive(mla_empty(place));
  }

  // At the end; the largest scores and sums of rows lie in shared memory.
  ASSAY_DEVICE void finish() const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) finish_row(i);
  }

 protected:
  ASSAY_DEVICE unsigned row(unsigned i) const { return warp_id() % 4 * 16 + i * 8 + lane_id() / 4; }

  const AttentionArgs& a_;
  const SequenceArgs& sequence_;
  const AttentionWork& work_;
  WgmmaQueue queue_;

 private:
  ASSAY_DEVICE void finish_row(unsigned i) const {
    const RowPlace place = row_place(a_, sequence_, work_, 0, work_.first_row + row(i));
    if (!place.exists) return;
    const float m = mla_largest()[row(i)], sum = mla_sums()[row(i)];
    const bool whole = work_.partial == AttentionWork::kWhole;
    const std::uint64_t slot = whole ? 0 : partial_slot(a_, work_.partial, 0, row(i));
    RowEnd end = {0, 1};
    if (whole)
      end = end_of_row(
          1, [&](unsigned) { return m; }, [&](unsigned) { return sum; }, nullptr);
    const float factor = whole ? share(m, end.top) * end.inverse : 1.0f;
    // As store_result(), two columns at a time.
    float* to = whole ? a_.out + (sequence_.first + place.query) * a_.out_stride + place.head * kMostLatent
                      : a_.partial_out + slot * kMostLatent;
    if (!whole && group_ == 0 && lane_id() % 4 == 0) {
      a_.partial_stats[2 * slot] = m;
      a_.partial_stats[2 * slot + 1] = sum;
    }
    ASSAY_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      ASSAY_UNROLL
      for (unsigned j = 0; j < 16; ++j) {
        const unsigned column = group_ * 256 + half * 128 + j * 8 + lane_id() % 4 * 2;
        const float* two = &o_[half][4 * j + 2 * i];
        Pair pair = {{two[0] * factor, two[1] * factor}};
        if (whole && a_.round_out) pair = {{round_to_bf16(pair.v[0]), round_to_bf16(pair.v[1])}};
        *reinterpret_cast<Pair*>(to + column) = pair;
      }
    }
  }

  const unsigned group_ = warp_id() / 4;
  float o_[2][64] = {};
};

// Warpgroup 0: scores and their softmax beside its half of the values.
class MlaScores : public MlaGroup {
 public:
  ASSAY_DEVICE MlaScores(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : MlaGroup(a, sequence, work) {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) high_[i] = row_place(a, sequence, work, 0, work.first_row + row(i)).high;
  }

  ASSAY_DEVICE void products(unsigned place, float (&s)[16]) {
    wgmma_fence(s);
    ASSAY_UNROLL
    for (unsigned tile = 0; tile < kMlaTiles; ++tile) {
      const SharedOperand q = shared_operand(mla_queries() + tile * kMlaRowTile);
      const SharedOperand keys = shared_operand(mla_step(place) + tile * kMlaKeyTile);
      ASSAY_UNROLL
      for (int k = 0; k < 4; ++k) wgmma_m64n32<bf16>(queue_, s, q.at(k), keys.at(k), tile != 0 || k != 0);
    }
    wgmma_commit(queue_);
    wgmma_wait<0>(queue_, s);
  }

  // Scores become weights in registers.
  ASSAY_DEVICE void weigh(unsigned step, float (&s)[16]) {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) weigh_row(step, s, i);
  }

  // What both warpgroups multiply with, once they have done with the step before.
  ASSAY_DEVICE void store_weights(const float (&s)[16]) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) {
      if (lane_id() % 4 == 0) mla_corrections()[row(i)] = correction_[i];
      ASSAY_UNROLL
      for (unsigned j = 0; j < kMlaKeys / 8; ++j)
        *reinterpret_cast<std::uint32_t*>(mla_weights() + mla_chunk(row(i), j) + lane_id() % 4 * 4) =
            pack_bf16(s[4 * j + 2 * i], s[4 * j + 2 * i + 1]);
    }
    shared_to_wgmma();
  }
  ASSAY_DEVICE void store_ends() const {
    if (lane_id() % 4 != 0) return;
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) {
      mla_largest()[row(i)] = m_[i];
      mla_sums()[row(i)] = sum_[i];
    }
  }

 private:
  ASSAY_DEVICE void weigh_row(unsigned step, float (&s)[16], unsigned i) {
    float largest = m_[i];
    ASSAY_UNROLL
    for (unsigned j = 0; j < kMlaKeys / 4; ++j) {
      float& x = s[j / 2 * 4 + 2 * i + j % 2];
      const unsigned key = step * kMlaKeys + j / 2 * 8 + lane_id() % 4 * 2 + j % 2;
      x = key < high_[i] ? x * a_.score_factor : kNoScore;  // of latents no score is capped
      largest = fmaxf(largest, x);
    }
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    largest = fmaxf(largest, shuffle_xor(largest, 2));
    correction_[i] = share(m_[i], base_of(largest));
    m_[i] = largest;
    float sum = 0;
    ASSAY_UNROLL
    for (unsigned j = 0; j < kMlaKeys / 4; ++j) {
      float& x = s[j / 2 * 4 + 2 * i + j % 2];
      x = fast_exp2(x - base_of(largest));
      sum += x;
    }
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    sum_[i] = fmaf(sum_[i], correction_[i], sum);
  }

  unsigned high_[2];
  float m_[2] = {kNoScore, kNoScore}, sum_[2] = {}, correction_[2] = {};
};

ASSAY_DEVICE void multiply_mla(const AttentionArgs& a, const SequenceArgs& sequence,
                               const AttentionWork& work) {
  const unsigned first = work.key_begin / kMlaKeys;
  MlaPlace place;
  if (warp_id() < 4) {
    MlaScores group(a, sequence, work);
    for (unsigned step = first; step * kMlaKeys < work.key_end; ++step, place.next()) {
      mbarrier_wait(mla_full(place.stage), place.phase);
      float s[16] = {};
      group.products(place.stage, s);
      group.weigh(step, s);
      if (step != first) sync_group(kMlaRead, 256);
      group.store_weights(s);
      sync_group(kMlaWritten, 256);
      group.values(place.stage);
      group.give_back(place.stage);
    }
    group.store_ends();
    sync_group(kMlaWritten, 256);
    group.finish();
  } else {
    MlaGroup group(a, sequence, work);
    for (unsigned step = first; step * kMlaKeys < work.key_end; ++step, place.next()) {
      mbarrier_wait(mla_full(place.stage), place.phase);
      if (step != first) sync_group(kMlaRead, 256);
      sync_group(kMlaWritten, 256);
      group.values(place.stage);
      group.give_back(place.stage);
    }
    sync_group(kMlaWritten, 256);
    group.finish();
  }
}

// Grid: pieces of work. Block: two warpgroups that multiply, and one that brings.
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(384, 1) mla_wgmma(AttentionArgs a) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if (thread_id() == 0) {
    for (unsigned i = 0; i < kMlaStages; ++i) {
      mbarrier_init(mla_full(i), 4);
      mbarrier_init(mla_empty(i), 8);
    }
    for (unsigned i = 0; i < kMlaKeys / 4; ++i) mbarrier_init(mla_raw(i), 1);
    mbarriers_ready();
  }
  sync_block();
  // Of their own: what is stored meanwhile might be what they point to.
  const AttentionWork work = a.work[block_index().x];
  const SequenceArgs sequence = a.sequences[work.sequence];
  if (warp_id() >= 8) {
    give_registers<72>();
    MlaKeys(sequence, work).bring();
  } else {
    take_registers<216>();
    hold_mla_queries(a, sequence, work);
    sync_group(kMlaWritten, 256);
    multiply_mla(a, sequence, work);
  }
#else
  __trap();  // planned for sm_90 alone, where it is compiled as sm_90a
#endif
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
