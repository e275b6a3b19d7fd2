// Attention of tiles of rows against the keys of their sequence, in one pass: FlashAttention-2 (Dao 2023),
// and, where a tile's keys are cut into several pieces of work, flash decoding; attention_merge.cuh adds
// those up.
//
//   for each 64 keys:  s = cap(scale · q kᵀ), masked;   m' = max(m, s);   p = 2^(s - m')
//                      l = 2^(m - m') l + Σ p;          o = 2^(m - m') o + p v
//   at the end:        out = o / l
//
// A warp owns 16 rows, or 32 of a prompt, for which it reads keys and values from shared memory once; what it keeps of
// them (o, m, l) stays in its registers. Keys and values come as tiles
// of 64 rows × 64 columns through a ring in shared memory, filled by cp.async `stages - 1` tiles ahead, so
// that any width of heads goes through the same room: columns of keys one tile after the other, then columns
// of values. Blocks in z share out values wider than kValueTiles tiles, and compute the scores anew.
//
// Steps begin at positions that are multiples of 64, whatever the tile: a row's bits do not depend on the
// rows beside it, on the size of the tile, nor on when its token came. No key behind key_end is read, nor one
// before key_begin: their places are zeros. A NaN in a key or value spoils the rows of the same tile that
// come before it, as 0 · NaN is.
#pragma once

#include "kernels/cuda/attention_tile.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kTile = 64;  // keys, and columns, of a tile in the ring
constexpr unsigned kTileGroups = kTile / 8;

// The tiles of a piece of work, in the order in which they are used.
template <class T>
class TileRing {
 public:
  static constexpr unsigned kPitch = kTile + TileMath<T>::kVector;

  ASSAY_DEVICE TileRing(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work,
                        unsigned kv_head, unsigned first_value_column, unsigned value_tiles)
      : a_(a),
        sequence_(sequence),
        work_(work),
        keys_(static_cast<const T*>(sequence.keys) + kv_head * a.head_stride),
        values_(static_cast<const T*>(sequence.values) + kv_head * a.value_head_stride + first_value_column),
        value_columns_(a.value_head_stride - first_value_column),
        key_tiles_((a.qk_dim + kTile - 1) / kTile),
        tiles_(key_tiles_ + value_tiles),
        step_(work.key_begin / kTile),
        last_step_((work.key_end + kTile - 1) / kTile) {}

  // Of two steps: those that start() loads of. It meets a barrier before it is needed.
  ASSAY_DEVICE void find_first_rows() {
    find_rows(step_);
    find_rows(step_ + 1);
  }
  ASSAY_DEVICE void start() {
    for (unsigned i = 0; i + 1 < a_.tiling.stages; ++i) load_next();
  }
  // The next tile, for all threads of the block; the one before is given back.
  ASSAY_DEVICE const T* take() {
    if (a_.tiling.stages == 4)
      cp_async_wait<2>();
    else if (a_.tiling.stages == 3)
      cp_async_wait<1>();
    else
      cp_async_wait<0>();
    sync_block();
    load_next();
    const T* tile = slot(taken_);
    taken_ = taken_ + 1 == a_.tiling.stages ? 0 : taken_ + 1;
    return tile;
  }

 private:
  // Rows of keys and values of one step; four steps of them, so that what is written is never what another
  // warp still reads.
  static ASSAY_DEVICE unsigned rows_of(unsigned step) { return step % 4 * 2 * kTile; }
  ASSAY_DEVICE std::int32_t* rows() { return shared_memory<std::int32_t>(a_.tiling.rows_found); }
  ASSAY_DEVICE T* slot(unsigned i) { return shared_memory<T>(a_.tiling.ring) + i * (kTile * kPitch); }

  ASSAY_DEVICE void find_rows(unsigned step) {
    for (unsigned i = thread_id(); i < 2 * kTile; i += thread_count()) {
      const unsigned position = step * kTile + i % kTile;
      const bool there = position >= work_.key_begin && position < work_.key_end;
      std::int32_t row = -1;
      if (there && i < kTile) row = row_of(sequence_.key_pages, sequence_.key_page_rows, position);
      if (there && i >= kTile) row = row_of(sequence_.value_pages, sequence_.value_page_rows, position);
      rows()[rows_of(step) + i] = row;
    }
  }

  ASSAY_DEVICE void load_next() {
    if (step_ < last_step_) {
      if (tile_ == 0) find_rows(step_ + 2);
      load(tile_ >= key_tiles_);
      loaded_ = loaded_ + 1 == a_.tiling.stages ? 0 : loaded_ + 1;
      if (++tile_ == tiles_) {
        tile_ = 0;
        ++step_;
      }
    }
    cp_async_commit();
  }

  ASSAY_DEVICE void load(bool of_values) {
    constexpr unsigned kVector = TileMath<T>::kVector, kVectors = kTile / kVector;
    const T* from = of_values ? values_ : keys_;
    const unsigned columns = of_values ? value_columns_ : a_.head_stride;
    const unsigned first = (of_values ? tile_ - key_tiles_ : tile_) * kTile;
    const std::uint64_t stride = of_values ? sequence_.value_stride : sequence_.key_stride;
    const std::int32_t* row_at = rows() + rows_of(step_) + (of_values ? kTile : 0);
    T* to = slot(loaded_);
    for (unsigned i = thread_id(); i < kTile * kVectors; i += thread_count()) {
      const unsigned r = i / kVectors, c = i % kVectors * kVector;
      const std::int32_t row = row_at[r];
      const bool there = row >= 0 && first + c < columns;
      const T* source = there ? from + static_cast<std::uint64_t>(row) * stride + first + c : from;
      cp_async16(to + r * kPitch + c, source, there);
    }
  }

  const AttentionArgs& a_;
  const SequenceArgs& sequence_;
  const AttentionWork& work_;
  const T* keys_;
  const T* values_;
  unsigned value_columns_;
  unsigned key_tiles_, tiles_;  // of a step
  unsigned step_, last_step_;   // to be loaded next
  unsigned tile_ = 0, loaded_ = 0, taken_ = 0;
};

// The tile's queries, zeros where there is none, in rows of whole fragments.
template <class T>
ASSAY_DEVICE void load_queries(const AttentionArgs& a, const SequenceArgs& sequence,
                               const AttentionWork& work, unsigned kv_head) {
  constexpr unsigned kVector = TileMath<T>::kVector;
  const unsigned vectors = (a.tiling.q_pitch - kVector) / kVector;
  T* to = shared_memory<T>();
  for (unsigned i = thread_id(); i < a.tiling.rows * vectors; i += thread_count()) {
    const unsigned r = i / vectors, c = i % vectors * kVector;
    const RowPlace place = row_place(a, sequence, work, kv_head, work.first_row + r);
    const bool there = place.exists && c < a.head_stride;
    const T* from = static_cast<const T*>(a.q);
    if (there) from += (sequence.first + place.query) * a.q_stride + place.head * a.head_stride + c;
    cp_async16(to + r * a.tiling.q_pitch + c, from, there);
  }
}

// The online softmax of a lane's two rows.
struct LaneRow {
  unsigned low, high;    // keys it sees
  float m = kNoScore;    // the largest score so far
  float sum = 0;         // Σ p of this lane's keys, relative to m
  float correction = 0;  // of what was summed before this step
};

// Scores of keys that the row does not see. Most steps have none: only those at the edges of what it sees come here.
ASSAY_DEVICE void hide_unseen(unsigned step, float (&s)[kTileGroups][4], const LaneRow& row, int half) {
  ASSAY_UNROLL
  for (unsigned n = 0; n < kTileGroups; ++n) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned key = step * kTile + n * 8 + lane_id() % 4 * 2 + e;
      if (key < row.low || key >= row.high) s[n][2 * half + static_cast<int>(e)] = kNoScore;
    }
  }
}

// Products of one step become weights, relative to the largest score so far.
ASSAY_DEVICE void weigh(const AttentionArgs& a, unsigned step, float (&s)[kTileGroups][4], LaneRow& row,
                        int half) {
  ASSAY_UNROLL
  for (unsigned n = 0; n < kTileGroups; ++n) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      float& x = s[n][2 * half + static_cast<int>(e)];
      x = score_of(a, x);
    }
  }
  if (step * kTile < row.low || (step + 1) * kTile > row.high) hide_unseen(step, s, row, half);
  float largest = row.m;
  ASSAY_UNROLL
  for (unsigned n = 0; n < kTileGroups; ++n) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 2; ++e) largest = fmaxf(largest, s[n][2 * half + static_cast<int>(e)]);
  }
  largest = fmaxf(largest, shuffle_xor(largest, 1));
  largest = fmaxf(largest, shuffle_xor(largest, 2));
  row.correction = share(row.m, base_of(largest));
  row.m = largest;
  float sum = 0;
  ASSAY_UNROLL
  for (unsigned n = 0; n < kTileGroups; ++n) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      float& x = s[n][2 * half + static_cast<int>(e)];
      x = fast_exp2(x - base_of(largest));
      sum += x;
    }
  }
  row.sum = fmaf(row.sum, row.correction, sum);
}

// How many groups of 8 columns are summed at once. A float32 is split for all of a tile's; bfloat16 numbers are
// multiplied as they are, and few sums at once leave registers to more rows.
template <class T>
constexpr unsigned kAtOnce = sizeof(T) == 4 ? kTileGroups : 2;

// s += q · keysᵀ over the tile's columns.
template <class T, int kGroups>
ASSAY_DEVICE void add_scores(const T* q, unsigned q_pitch, const T* keys, unsigned columns,
                             float (&s)[kGroups][kTileGroups][4]) {
  using Math = TileMath<T>;
  constexpr unsigned kSteps = kTile / Math::kStep, kHeld = sizeof(T) == 4 ? 1 : kSteps;
  const unsigned steps = columns < kTile ? (columns + Math::kStep - 1) / Math::kStep : kSteps;
  typename Math::Left left[kGroups][kHeld] = {};
  const auto load = [&](unsigned to, unsigned step) {
    ASSAY_UNROLL
    for (unsigned g = 0; g < kGroups; ++g)
      left[g][to] = Math::left(q + g * 16 * q_pitch + step * Math::kStep, q_pitch);
  };
  if constexpr (kHeld > 1) {
    ASSAY_UNROLL
    for (unsigned i = 0; i < kHeld; ++i) {
      if (i < steps) load(i, i);
    }
  }
  ASSAY_UNROLL
  for (unsigned first = 0; first < kTileGroups; first += kAtOnce<T>) {
    float fresh[kGroups][kAtOnce<T>][4] = {};
    ASSAY_UNROLL
    for (unsigned i = 0; i < kSteps; ++i) {
      if (i >= steps) continue;
      if constexpr (kHeld == 1) load(0, i);
      ASSAY_UNROLL
      for (unsigned n = 0; n < kAtOnce<T>; n += 2) {
        const auto right = Math::right_across(keys + (first + n) * 8 * TileRing<T>::kPitch + i * Math::kStep,
                                              TileRing<T>::kPitch);
        ASSAY_UNROLL
        for (unsigned g = 0; g < kGroups; ++g)
          Math::multiply(left[g][i % kHeld], right, fresh[g][n], fresh[g][n + 1]);
      }
    }
    ASSAY_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      ASSAY_UNROLL
      for (unsigned e = 0; e < 4 * kAtOnce<T>; ++e) s[g][first + e / 4][e % 4] += fresh[g][e / 4][e % 4];
    }
  }
}

// o = correction · o + p · values, for the tile's columns.
template <class T, int kGroups, int kValueTiles>
ASSAY_DEVICE void add_values(const float (&p)[kGroups][kTileGroups][4], const T* values,
                             const LaneRow (&rows)[kGroups][2],
                             float (&o)[kGroups][kValueTiles][kTileGroups][4], unsigned tile) {
  using Math = TileMath<T>;
  ASSAY_UNROLL
  for (unsigned first = 0; first < kTileGroups; first += kAtOnce<T>) {
    float fresh[kGroups][kAtOnce<T>][4] = {};
    ASSAY_UNROLL
    for (unsigned i = 0; i < kTile / Math::kStep; ++i) {
      typename Math::Left left[kGroups];
      ASSAY_UNROLL
      for (unsigned g = 0; g < kGroups; ++g) left[g] = Math::left(p[g], static_cast<int>(i));
      ASSAY_UNROLL
      for (unsigned n = 0; n < kAtOnce<T>; n += 2) {
        const auto right = Math::right_down(values + i * Math::kStep * TileRing<T>::kPitch + (first + n) * 8,
                                            TileRing<T>::kPitch);
        ASSAY_UNROLL
        for (unsigned g = 0; g < kGroups; ++g) Math::multiply(left[g], right, fresh[g][n], fresh[g][n + 1]);
      }
    }
    ASSAY_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      ASSAY_UNROLL
      for (unsigned e = 0; e < 4 * kAtOnce<T>; ++e) {
        float& sum = o[g][tile][first + e / 4][e % 4];
        sum = fmaf(sum, rows[g][e % 4 / 2].correction, fresh[g][e / 4][e % 4]);
      }
    }
  }
}

// A lane's part of one row, at the end: the result itself, or what the merge wants.
template <int kValueTiles>
ASSAY_DEVICE void finish_row(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work,
                             const float (&o)[kValueTiles][kTileGroups][4], const LaneRow& row,
                             unsigned first_row, int half) {
  const unsigned kv_head = block_index().y, first_column = block_index().z * kValueTiles * kTile;
  float sum = row.sum + shuffle_xor(row.sum, 1);
  sum += shuffle_xor(sum, 2);
  const unsigned in_tile = first_row + lane_id() / 4 + static_cast<unsigned>(half) * 8;
  const RowPlace place = row_place(a, sequence, work, kv_head, work.first_row + in_tile);
  if (!place.exists) return;
  const bool whole = work.partial == AttentionWork::kWhole;
  const std::uint64_t slot = whole ? 0 : partial_slot(a, work.partial, kv_head, in_tile);
  RowEnd end = {0, 1};
  if (whole)
    end = end_of_row(
        1, [&](unsigned) { return row.m; }, [&](unsigned) { return sum; },
        a.sinks == nullptr ? nullptr : a.sinks + place.head);
  const float factor = whole ? share(row.m, end.top) : 1.0f;
  if (!whole && block_index().z == 0 && lane_id() % 4 == 0) {
    a.partial_stats[2 * slot] = row.m;
    a.partial_stats[2 * slot + 1] = sum;
  }
  ASSAY_UNROLL
  for (unsigned v = 0; v < kValueTiles; ++v) {
    ASSAY_UNROLL
    for (unsigned n = 0; n < kTileGroups; ++n) {
      ASSAY_UNROLL
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned column = first_column + v * kTile + n * 8 + lane_id() % 4 * 2 + e;
        if (column >= a.v_dim) continue;
        const float sums = o[v][n][2 * half + static_cast<int>(e)];
        if (whole)
          store_result(a, sequence, place.query, place.head, column, sums * factor * end.inverse);
        else
          a.partial_out[slot * a.v_dim + column] = sums;
      }
    }
  }
}

// Grid: pieces of work × key heads × groups of value columns. Block: a warp for 16 · kGroups rows.
template <class T, int kValueTiles, int kGroups>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(128, 2) flash_attention(AttentionArgs a) {
  const AttentionWork work = a.work[block_index().x];
  const SequenceArgs sequence = a.sequences[work.sequence];
  const unsigned kv_head = block_index().y, first_column = block_index().z * kValueTiles * kTile;
  const unsigned columns = a.v_dim - first_column;
  const unsigned value_tiles =
      columns < kValueTiles * kTile ? (columns + kTile - 1) / kTile : static_cast<unsigned>(kValueTiles);

  TileRing<T> ring(a, sequence, work, kv_head, first_column, value_tiles);
  ring.find_first_rows();
  load_queries<T>(a, sequence, work, kv_head);
  sync_block();
  ring.start();

  const unsigned first_row = warp_id() * (16 * kGroups);
  const T* q = shared_memory<T>() + first_row * a.tiling.q_pitch;
  LaneRow rows[kGroups][2];
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2 * kGroups; ++i) {
    const RowPlace place =
        row_place(a, sequence, work, kv_head, work.first_row + first_row + i * 8 + lane_id() / 4);
    rows[i / 2][i % 2].low = place.low;
    rows[i / 2][i % 2].high = place.high;
  }
  float o[kGroups][kValueTiles][kTileGroups][4] = {};
  for (unsigned step = work.key_begin / kTile; step * kTile < work.key_end; ++step) {
    float s[kGroups][kTileGroups][4] = {};
    for (unsigned column = 0; column < a.qk_dim; column += kTile)
      add_scores<T, kGroups>(q + column, a.tiling.q_pitch, ring.take(), a.qk_dim - column, s);
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kGroups; ++i)
      weigh(a, step, s[i / 2], rows[i / 2][i % 2], static_cast<int>(i % 2));
    ASSAY_UNROLL
    for (unsigned v = 0; v < kValueTiles; ++v) {
      if (v < value_tiles) add_values<T, kGroups, kValueTiles>(s, ring.take(), rows, o, v);
    }
  }
  ASSAY_UNROLL
  for (unsigned i = 0; i < 2 * kGroups; ++i)
    finish_row<kValueTiles>(a, sequence, work, o[i / 2], rows[i / 2][i % 2], first_row + i / 2 * 16,
                            static_cast<int>(i % 2));
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
