// Absorbed MLA of DeepSeek's widths, rows of the cache [latent 512 | rotary part 64], in bfloat16 on Hopper's
// warpgroups (after FlashMLA). 64 rows of queries and heads a block, steps of 64 keys:
//
//   warpgroup 0   scores = q keysᵀ, softmax;   o = correction · o + p c, of columns 0 … 255
//   warpgroup 1                                the same of columns 256 … 511
//   warpgroup 2   brings keys: float32 from the cache where it lies, bfloat16 into a ring of two steps
//
// A step's rows lie as nine tiles of 64 keys × 64 columns, swizzled as wgmma wants them. Across, a tile's rows are
// the columns of the scores; down, they are the terms of p c. So a row of the cache comes from memory once for 64
// rows of queries, and is packed nowhere: 2,304 bytes, which at an H100's 12.8 bytes a clock and SM are 180 clocks, of
// which the tensor cores need 34 (64 × (576 + 512) products at 2,048 a clock).
//
// Scores are sums of 576 terms within tensor cores, which cut each of 36 steps off at 2^-23 of the sum at most: 2^-17.8
// beside bfloat16's 2^-9. Values are sums of 64, added in float32. What a row gets depends on its own keys alone: a
// step's begin at multiples of 64.
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/mbarrier.cuh"
#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// Where things lie in shared memory: attention_args.h.
constexpr unsigned kMlaTile = MlaWgmmaRoom::kTile, kMlaTiles = MlaWgmmaRoom::kTiles;
constexpr unsigned kMlaKeys = 64, kMlaRows = MlaWgmmaRoom::kRows, kMlaStages = MlaWgmmaRoom::kSteps;

ASSAY_DEVICE unsigned char* mla_queries() {
  return shared_memory<unsigned char>(MlaWgmmaRoom::kQueries);
}
ASSAY_DEVICE unsigned char* mla_step(unsigned place) {
  return shared_memory<unsigned char>(MlaWgmmaRoom::kRing + place * kMlaTiles * kMlaTile);
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
// full: the producer's warps; empty: the warps that multiply.
ASSAY_DEVICE Mbarrier* mla_full(unsigned place) {
  return shared_memory<Mbarrier>(MlaWgmmaRoom::kBarriers) + place;
}
ASSAY_DEVICE Mbarrier* mla_empty(unsigned place) {
  return shared_memory<Mbarrier>(MlaWgmmaRoom::kBarriers) + kMlaStages + place;
}
// Byte of 16-byte chunk `chunk` of row `row` of a tile.
ASSAY_DEVICE unsigned mla_chunk(unsigned row, unsigned chunk) {
  return row * 128 + ((chunk ^ (row & 7)) << 4);
}

// Barriers: of the warpgroups that multiply, for the weights of a step; from the last on, of each warp that brings.
constexpr unsigned kMlaWritten = 1, kMlaRead = 2, kMlaAlone = 3;

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
      *reinterpret_cast<Quad*>(mla_queries() + chunk / 8 * kMlaTile + mla_chunk(row, chunk % 8)) = chunks[j];
    }
  }
  shared_to_wgmma();
}

// The producer's warps. Each has 16 of a step's rows, two at a time: 288 × 16 bytes, nine a lane. They come through a ring
// of registers, three a unit: a unit is asked for when the one six before it has been laid down, so that 15 to 18 of a
// lane's 16 bytes are under way at any time, 30 to 36 KB of an SM.
class MlaKeys {
  static constexpr unsigned kOfAUnit = 3, kUnitsOfAPair = 3, kRingPairs = 2,
                            kRing = kRingPairs * kUnitsOfAPair;
  static constexpr unsigned kPairs = 8, kOfAWarp = 2 * kPairs;

 public:
  ASSAY_DEVICE MlaKeys(const SequenceArgs& sequence, const AttentionWork& work)
      : keys_(reinterpret_cast<const Quad*>(sequence.keys)),
        quads_(sequence.key_stride / 4),
        pages_(sequence.key_pages),
        page_rows_(sequence.key_page_rows),
        begin_(work.key_begin),
        end_(work.key_end),
        step_(work.key_begin / kMlaKeys),
        looked_up_(step_) {}

  ASSAY_DEVICE void bring() {
    next_row_ = find_row();
    turn();
    Quad ring[kRing][kOfAUnit];
    ask_all(ring, 0);
    for (; step_ * kMlaKeys < end_; ++step_) {
      mbarrier_wait(mla_empty(place_.stage), place_.phase ^ 1);
      ASSAY_NO_UNROLL
      for (unsigned pair = 0; pair < kPairs; pair += kRingPairs) {
        const bool last = pair + kRingPairs == kPairs;
        if (last) turn();
        exchange(ring, pair, last ? 0 : pair + kRingPairs);
      }
      shared_to_wgmma();
      sync_warp();
      if (lane_id() == 0) mbarrier_arrive(mla_full(place_.stage));
      place_.next();
    }
  }

 private:
  // What is asked for from here on is of the step behind that of before; the one behind it is looked up.
  ASSAY_DEVICE void turn() {
    row_ = next_row_;
    ++looked_up_;
    next_row_ = find_row();
  }
  // Of the step to be looked up, this warp's row lane % 16; -1: there is none.
  ASSAY_DEVICE std::int32_t find_row() const {
    const unsigned position = looked_up_ * kMlaKeys + warp_id() % 4 * kOfAWarp + lane_id() % kOfAWarp;
    return position >= begin_ && position < end_ ? row_of(pages_, page_rows_, position) : -1;
  }

  ASSAY_DEVICE void ask_all(Quad (&ring)[kRing][kOfAUnit], unsigned pair) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < kRing; ++i) ask(ring[i], pair + i / kUnitsOfAPair, i % kUnitsOfAPair);
  }
  // Barriers of the warp by itself are for the compiler, which puts loads behind all stores else: what is asked for is asked
  // for now.
  ASSAY_DEVICE void exchange(Quad (&ring)[kRing][kOfAUnit], unsigned laid_down, unsigned asked_for) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < kRing; ++i) {
      lay_down(ring[i], laid_down + i / kUnitsOfAPair, i % kUnitsOfAPair);
      ask(ring[i], asked_for + i / kUnitsOfAPair, i % kUnitsOfAPair);
      sync_group(kMlaAlone + warp_id() % 4, 32);
    }
  }

  // Quad lane + 32 n of the 288 of a pair of rows.
  struct QuadPlace {
    unsigned row, column;  // 0 or 1; a column is four numbers
  };
  static ASSAY_DEVICE QuadPlace place_of(unsigned lane, unsigned n) {
    if (n < 4) return {0, lane + 32 * n};
    if (n > 4) return {1, lane + 32 * n - 144};
    return lane < 16 ? QuadPlace{0, lane + 128} : QuadPlace{1, lane - 16};
  }

  // A unit is a third of a pair. What depends on the lane alone is made anew each time, which takes no registers.
  ASSAY_DEVICE void ask(Quad (&to)[kOfAUnit], unsigned pair, unsigned third) const {
    const unsigned lane = anew(lane_id());
    ASSAY_UNROLL
    for (unsigned k = 0; k < kOfAUnit; ++k) {
      const QuadPlace place = place_of(lane, kOfAUnit * third + k);
      const std::int32_t row = shuffle_idx(row_, 2 * pair + place.row);
      const Quad* from = keys_ + static_cast<std::uint32_t>(row < 0 ? 0 : row) * quads_;
      to[k] = load_between<Quad>(from + place.column, row >= 0);
    }
  }
  ASSAY_DEVICE void lay_down(const Quad (&from)[kOfAUnit], unsigned pair, unsigned third) const {
    const unsigned lane = anew(lane_id()), first = warp_id() % 4 * kOfAWarp + 2 * pair;
    ASSAY_UNROLL
    for (unsigned k = 0; k < kOfAUnit; ++k) {
      const QuadPlace place = place_of(lane, kOfAUnit * third + k);
      unsigned char* at = mla_step(place_.stage) + place.column / 16 * kMlaTile +
                          mla_chunk(first + place.row, place.column % 16 / 2) + place.column % 2 * 8;
      const float(&v)[4] = from[k].v;
      *reinterpret_cast<WordPair*>(at) = {{pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3])}};
    }
  }

  const Quad* keys_;
  std::uint64_t quads_;  // from row to row
  const std::int32_t* pages_;
  unsigned page_rows_, begin_, end_;
  unsigned step_, looked_up_;  // to be laid down; whose rows are to be looked up
  std::int32_t row_ = -1, next_row_ = -1;
  MlaPlace place_;  // to be filled next
};

// A warpgroup that multiplies: it has 256 columns of the results of all rows. Of a thread's sums, element e of four is
// of row `row(e / 2)`, columns 8 j + 2 (lane % 4) + e % 2.
class MlaGroup {
 public:
  ASSAY_DEVICE MlaGroup(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : a_(a), sequence_(sequence), work_(work) {}

  // o = correction · o + p c of the step at `place`, 64 columns after the other: registers are for the sums.
  ASSAY_DEVICE void values(unsigned place) {
    const float correction[2] = {mla_corrections()[row(0)], mla_corrections()[row(1)]};
    const SharedOperand weights = shared_operand(mla_weights());
    ASSAY_UNROLL
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      const DownOperand columns = down_operand(mla_step(place) + (group_ * 4 + quarter) * kMlaTile, kMlaTile);
      float fresh[32] = {};
      wgmma_fence(fresh);
      ASSAY_UNROLL
      for (int k = 0; k < 4; ++k)
        wgmma_m64n64_down<bf16>(queue_, fresh, weights.at(k), columns.at(k), k != 0);
      wgmma_commit(queue_);
      wgmma_wait<0>(queue_, fresh);
      ASSAY_UNROLL
      for (unsigned i = 0; i < 32; ++i)
        o_[quarter][i] = fmaf(o_[quarter][i], correction[i / 2 % 2], fresh[i]);
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
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      ASSAY_UNROLL
      for (unsigned j = 0; j < 8; ++j) {
        const unsigned column = group_ * 256 + quarter * 64 + j * 8 + lane_id() % 4 * 2;
        const float* two = &o_[quarter][4 * j + 2 * i];
        Pair pair = {{two[0] * factor, two[1] * factor}};
        if (whole && a_.round_out) pair = {{round_to_bf16(pair.v[0]), round_to_bf16(pair.v[1])}};
        *reinterpret_cast<Pair*>(to + column) = pair;
      }
    }
  }

  const unsigned group_ = warp_id() / 4;
  float o_[4][32] = {};
};

// Warpgroup 0: scores and their softmax beside its half of the values.
class MlaScores : public MlaGroup {
 public:
  ASSAY_DEVICE MlaScores(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : MlaGroup(a, sequence, work) {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) high_[i] = row_place(a, sequence, work, 0, work.first_row + row(i)).high;
  }

  ASSAY_DEVICE void products(unsigned place, float (&s)[32]) {
    wgmma_fence(s);
    ASSAY_UNROLL
    for (unsigned tile = 0; tile < kMlaTiles; ++tile) {
      const SharedOperand q = shared_operand(mla_queries() + tile * kMlaTile);
      const SharedOperand keys = shared_operand(mla_step(place) + tile * kMlaTile);
      ASSAY_UNROLL
      for (int k = 0; k < 4; ++k) wgmma_m64n64<bf16>(queue_, s, q.at(k), keys.at(k), tile != 0 || k != 0);
    }
    wgmma_commit(queue_);
    wgmma_wait<0>(queue_, s);
  }

  // Scores become weights in registers.
  ASSAY_DEVICE void weigh(unsigned step, float (&s)[32]) {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) weigh_row(step, s, i);
  }

  // What both warpgroups multiply with, once they have done with the step before.
  ASSAY_DEVICE void store_weights(const float (&s)[32]) const {
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2; ++i) {
      if (lane_id() % 4 == 0) mla_corrections()[row(i)] = correction_[i];
      ASSAY_UNROLL
      for (unsigned j = 0; j < 8; ++j)
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
  ASSAY_DEVICE void weigh_row(unsigned step, float (&s)[32], unsigned i) {
    float largest = m_[i];
    ASSAY_UNROLL
    for (unsigned j = 0; j < 16; ++j) {
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
    for (unsigned j = 0; j < 16; ++j) {
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
      float s[32] = {};
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
    mbarriers_ready();
  }
  sync_block();
  // Of their own: what is stored meanwhile might be what they point to.
  const AttentionWork work = a.work[block_index().x];
  const SequenceArgs sequence = a.sequences[work.sequence];
  if (warp_id() >= 8) {
    give_registers<120>();
    MlaKeys(sequence, work).bring();
  } else {
    take_registers<192>();
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
