// Attention of the few rows of a sequence that decodes, bound by the memory that its cache is read from. What it computes is
// what flash_attention.cuh does, step by step; what differs is how keys and values come.
//
//   s = cap(scale · q kᵀ), masked;   m' = max(m, s);   p = 2^(s - m');   l = 2^(m - m') l + Σ p;   oᵀ = 2^(m - m') oᵀ + vᵀ pᵀ
//
// Each number is used by one warp, once, so that nothing is won by laying it down in shared memory: it goes from global
// memory into the registers that tensor cores read. To keep an SM's share of an H100's 3.35 TB/s coming, 14.5 bytes a clock,
// through some 900 clocks of latency takes 13 KB under way. A warp has 8 KB of registers for one step of 8 keys of 128
// columns (16 of 64); next step's keys are asked for when this one's scores are done, its values when their products are.
// Of 16 warps on an SM 64 KB are under way wherever each of them is.
//
// Fragments (mma.cuh) of m16n8k8, lane 4g + t. No lane ever needs another one's numbers:
//
//   scores: A = q (row g, g + 8), B = k (key g). Terms may come in any order that both have, so that a lane's 16 bytes of key
//     g, columns 16j + 4t + {0, 1, 2, 3}, are terms t and t + 4 of one product, then of a second.
//   values: A = vᵀ, B = pᵀ. Scores of row g lie as keys 2t and 2t + 1, which is B's column g if those are its terms t and
//     t + 4. A's rows g and g + 8 are columns 32n + 4g + {0, 1}, in a second product {2, 3}, of what a lane loads of the rows of
//     keys 2t and 2t + 1: 16 bytes, together with lanes of other g a line of 128.
//
// So 8 rows take half the registers and products for oᵀ that o would, whose fragments have 16.
//
// Steps begin at multiples of their length and go around the warps by position; each warp has its own m, l and oᵀ, put
// together at the end by attention_merge.cuh's formula. No key behind key_end is read, nor one before key_begin: zeros.
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/memory.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// Numbers as the tensor cores take them; T as in attention_tile.cuh.
template <class T>
struct StreamMath;

template <>
struct StreamMath<float> {
  using Left = TileMath<float>::Left;
  struct Right {
    std::uint32_t high[2], low[2];
  };
  static ASSAY_DEVICE Left left(float a, float b, float c, float d) {
    return TileMath<float>::split(a, b, c, d);
  }
  static ASSAY_DEVICE Right right(float a, float b) {
    const std::uint32_t high[2] = {to_tf32(a), to_tf32(b)};
    return {{high[0], high[1]}, {to_tf32(a - float_of(high[0])), to_tf32(b - float_of(high[1]))}};
  }
  static ASSAY_DEVICE Right weights(float a, float b) { return right(a, b); }
  static ASSAY_DEVICE void multiply(const Left& l, const Right& r, float (&d)[4]) {
    mma_m16n8k8_tf32(d, l.low, r.high);
    mma_m16n8k8_tf32(d, l.high, r.low);
    mma_m16n8k8_tf32(d, l.high, r.high);
  }
};

template <>
struct StreamMath<wide_bf16> {
  using Left = TileMath<wide_bf16>::Left;
  struct Right {
    std::uint32_t b[2];
  };
  static ASSAY_DEVICE Left left(float a, float b, float c, float d) {
    return {{bits_of(a), bits_of(b), bits_of(c), bits_of(d)}};
  }
  static ASSAY_DEVICE Right right(float a, float b) { return {{bits_of(a), bits_of(b)}}; }
  static ASSAY_DEVICE Right weights(float a, float b) { return right(round_to_bf16(a), round_to_bf16(b)); }
  static ASSAY_DEVICE void multiply(const Left& l, const Right& r, float (&d)[4]) {
    mma_m16n8k8_tf32(d, l.a, r.b);
  }
};

// What a block knows of its work, in shared memory: read there whenever it is needed, since registers are for what is under
// way.
struct alignas(16) StreamPlace {
  const float* keys;  // of the head
  const float* values;
  const std::int32_t* pages[2];  // of keys, of values
  std::uint32_t page_rows[2];
  std::uint32_t key_quads, value_quads;  // from row to row, of 16 bytes: 64 GB of a row are enough
  std::uint32_t key_begin, key_end;
};
struct alignas(8) SeenKeys {
  std::uint32_t low, high;
};

// The online softmax of one row, as a warp's lane sees it: half of its keys of a step.
struct StreamedRow {
  float m = kNoScore;  // the largest score so far
  float sum = 0;       // Σ p of this lane's keys, relative to m
};

// Of an instance. Queries lie where its warps leave their sums.
template <unsigned kColumns, unsigned kRows>
struct StreamShape {
  static constexpr unsigned kSets = kColumns == 64 ? 2 : 1;  // of 8 keys, of one step
  static constexpr unsigned kKeys = 8 * kSets;
  static constexpr unsigned kKeyQuads = kColumns / 16;    // of 16 bytes, of a key, a lane's
  static constexpr unsigned kValueQuads = kColumns / 32;  // of a value
  static constexpr unsigned kHalves = kRows / 8;          // of 8 rows
  // A quarter of a warp reads 16 floats of each of 2 rows of queries, and writes 8 of each of 4 even rows of sums: 32 banks.
  static constexpr unsigned kQueryPitch = kColumns + 16, kSumPitch = stream_sum_pitch(kColumns);
  static constexpr unsigned kStats = kStreamWarps * kRows * kSumPitch;  // floats before them
  static constexpr unsigned kPlace = kStats + 2 * kStreamWarps * kRows,
                            kSeen = kPlace + sizeof(StreamPlace) / 4;
  static_assert(kRows * kQueryPitch <= kStats);
  static_assert(kSeen + 2 * kRows == stream_floats(kColumns, kRows));
};

template <class T, unsigned kColumns, unsigned kRows>
class StreamingWarp {
 public:
  using Shape = StreamShape<kColumns, kRows>;
  using Math = StreamMath<T>;
  static constexpr unsigned kSets = Shape::kSets, kKeys = Shape::kKeys, kHalves = Shape::kHalves;

  ASSAY_DEVICE explicit StreamingWarp(const AttentionArgs& a) : a_(a) {}

  // Asks for its first step, once place() is laid down.
  ASSAY_DEVICE void begin() {
    const unsigned first = place().key_begin / kKeys;
    step_ = first + (warp_id() + kStreamWarps - first % kStreamWarps) % kStreamWarps;
    const std::int32_t found = find(step_);
    next_ = find(step_ + kStreamWarps);
    load_keys(found);
    load_values(found);
  }
  // All of its steps. Queries lie in shared memory.
  ASSAY_DEVICE void run() {
    // Barriers of the warp, for the compiler alone: across them it makes no addresses or fragments ahead, for which registers
    // are too few (without them, and branches in add_scores() and add_values(), some 90 words were spilled).
    for (; step_ * kKeys < place().key_end; step_ += kStreamWarps) {
      float s[kSets][4] = {};
      add_scores(s);
      sync_warp();
      load_keys(next_);
      float corrections[kHalves];
      ASSAY_UNROLL
      for (unsigned i = 0; i < kHalves; ++i) corrections[i] = weigh(step_, s, rows_[i], i);
      add_values(s, corrections);
      sync_warp();
      load_values(next_);
      sync_warp();
      next_ = find(step_ + 2 * kStreamWarps);  // whose table is read while scores are waited for
    }
  }

  // oᵀ, m and l to shared memory.
  ASSAY_DEVICE void leave() const {
    float* shared = shared_memory<float>();
    const unsigned g = lane_id() / 4, t = lane_id() % 4;
    ASSAY_UNROLL
    for (unsigned i = 0; i < kHalves; ++i) {
      float* row = shared + (warp_id() * kRows + i * 8 + 2 * t) * Shape::kSumPitch + 4 * g;
      ASSAY_UNROLL
      for (unsigned n = 0; n < Shape::kValueQuads; ++n) {
        const auto& o = o_[i][n];
        *reinterpret_cast<Quad*>(row + 32 * n) = {o[0][0], o[0][2], o[1][0], o[1][2]};
        *reinterpret_cast<Quad*>(row + Shape::kSumPitch + 32 * n) = {o[0][1], o[0][3], o[1][1], o[1][3]};
      }
      float sum = rows_[i].sum + shuffle_xor(rows_[i].sum, 1);
      sum += shuffle_xor(sum, 2);
      float* stats = shared + Shape::kStats + (warp_id() * kRows + i * 8 + g) * 2;
      if (t == 0) {
        stats[0] = rows_[i].m;
        stats[1] = sum;
      }
    }
  }

 private:
  // Of this block. Read anew, at each call.
  static ASSAY_DEVICE const StreamPlace& place() {
    return *shared_memory<StreamPlace>(anew(4 * Shape::kPlace));
  }

  // Where in their pools a step's keys and values lie: lanes 0 … kKeys - 1 know of keys, as many behind them of values.
  // -1: nowhere.
  static ASSAY_DEVICE std::int32_t find(unsigned step) {
    const StreamPlace& there = place();
    const unsigned lane = anew(lane_id()), position = step * kKeys + lane % kKeys, which = lane / kKeys % 2;
    if (position < there.key_begin || position >= there.key_end) return -1;
    return row_of(there.pages[which], there.page_rows[which], position);
  }

  static ASSAY_DEVICE const float* row_at(const float* first, std::int32_t row, std::uint32_t quads) {
    const auto there = static_cast<std::uint32_t>(row < 0 ? 0 : row);
    return first + static_cast<std::uint64_t>(there) * quads * 4;
  }

  // What depends on the lane alone is made anew each time: registers are for what is under way.
  ASSAY_DEVICE void load_keys(std::int32_t found) {
    const StreamPlace& there = place();
    const unsigned lane = anew(lane_id());
    ASSAY_UNROLL
    for (unsigned i = 0; i < kSets; ++i) {
      const std::int32_t row = shuffle_idx(found, i * 8 + lane / 4);
      const float* at = row_at(there.keys, row, there.key_quads) + lane % 4 * 4;
      const int columns = row < 0 ? 0 : static_cast<int>(a_.head_stride - lane % 4 * 4);  // from its first on
      ASSAY_UNROLL
      for (int j = 0; j < static_cast<int>(Shape::kKeyQuads); ++j)
        keys_[i][j] = load_once<Quad>(at + 16 * j, 16 * j < columns);
    }
  }

  ASSAY_DEVICE void load_values(std::int32_t found) {
    const StreamPlace& there = place();
    const unsigned lane = anew(lane_id());
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kSets; ++i) {
      const std::int32_t row = shuffle_idx(found, kKeys + i / 2 * 8 + lane % 4 * 2 + i % 2);
      const float* at = row_at(there.values, row, there.value_quads) + lane / 4 * 4;
      const int columns = row < 0 ? 0 : static_cast<int>(a_.value_head_stride - lane / 4 * 4);
      ASSAY_UNROLL
      for (int n = 0; n < static_cast<int>(Shape::kValueQuads); ++n)
        values_[i][n] = load_once<Quad>(at + 32 * n, 32 * n < columns);
    }
  }

  // s += q kᵀ. No sum on tensor cores is longer than 64 terms. 32 columns are done with before the next are begun, here and in
  // add_values(): branches keep the compiler from making fragments of all of them at once, for which registers are too few.
  ASSAY_DEVICE void add_scores(float (&s)[kSets][4]) const {
    const unsigned lane = anew(lane_id());
    const float* at = shared_memory<float>() + lane / 4 * Shape::kQueryPitch + lane % 4 * 4;
    float fresh[kSets][4] = {};
    ASSAY_UNROLL
    for (unsigned first = 0; first < Shape::kKeyQuads; first += 2) {
      if (16 * first >= a_.qk_dim) continue;
      ASSAY_UNROLL
      for (unsigned j = first; j < first + 2; ++j) {
        const Quad upper = *reinterpret_cast<const Quad*>(at + 16 * j);
        Quad lower = {};
        if constexpr (kHalves == 2)
          lower = *reinterpret_cast<const Quad*>(at + 8 * Shape::kQueryPitch + 16 * j);
        ASSAY_UNROLL
        for (unsigned h = 0; h < 4; h += 2) {
          const auto left = Math::left(upper.v[h], lower.v[h], upper.v[h + 1], lower.v[h + 1]);
          ASSAY_UNROLL
          for (unsigned i = 0; i < kSets; ++i)
            Math::multiply(left, Math::right(keys_[i][j].v[h], keys_[i][j].v[h + 1]), fresh[i]);
        }
      }
      if (first % 4 == 0) continue;
      take(fresh, s);
    }
    take(fresh, s);
  }
  static ASSAY_DEVICE void take(float (&fresh)[kSets][4], float (&s)[kSets][4]) {
    ASSAY_UNROLL
    for (unsigned e = 0; e < 4 * kSets; ++e) {
      s[e / 4][e % 4] += fresh[e / 4][e % 4];
      fresh[e / 4][e % 4] = 0;
    }
  }

  // Products become weights, relative to the largest score so far; returned is what earlier sums are multiplied by.
  ASSAY_DEVICE float weigh(unsigned step, float (&s)[kSets][4], StreamedRow& row, unsigned half) const {
    const unsigned lane = anew(lane_id());
    const SeenKeys seen = shared_memory<SeenKeys>(anew(4 * Shape::kSeen))[half * 8 + lane / 4];
    float largest = row.m;
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kSets; ++i) {
      float& x = s[i / 2][2 * half + i % 2];
      const unsigned key = step * kKeys + i / 2 * 8 + lane % 4 * 2 + i % 2;
      x = key < seen.low || key >= seen.high ? kNoScore : score_of(a_, x);
      largest = fmaxf(largest, x);
    }
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    largest = fmaxf(largest, shuffle_xor(largest, 2));
    const float correction = share(row.m, base_of(largest));
    row.m = largest;
    float sum = 0;
    ASSAY_UNROLL
    for (unsigned i = 0; i < 2 * kSets; ++i) {
      float& x = s[i / 2][2 * half + i % 2];
      x = fast_exp2(x - base_of(largest));
      sum += x;
    }
    row.sum = fmaf(row.sum, correction, sum);
    return correction;
  }

  // oᵀ = correction · oᵀ + vᵀ pᵀ. A lane has columns 2t and 2t + 1 of it: those rows' corrections are lanes 8t's and 8t + 4's.
  ASSAY_DEVICE void add_values(const float (&p)[kSets][4], const float (&corrections)[kHalves]) {
    const unsigned lane = anew(lane_id());
    float of_row[kHalves][2];
    typename Math::Right right[kHalves][kSets];
    ASSAY_UNROLL
    for (unsigned half = 0; half < kHalves; ++half) {
      of_row[half][0] = shuffle_idx(corrections[half], lane % 4 * 8);
      of_row[half][1] = shuffle_idx(corrections[half], lane % 4 * 8 + 4);
      ASSAY_UNROLL
      for (unsigned i = 0; i < kSets; ++i) right[half][i] = Math::weights(p[i][2 * half], p[i][2 * half + 1]);
    }
    ASSAY_UNROLL
    for (unsigned n = 0; n < 2 * Shape::kValueQuads; ++n) {
      if (n / 2 * 32 >= a_.v_dim) continue;
      const unsigned h = n % 2 * 2;
      float fresh[kHalves][4] = {};
      ASSAY_UNROLL
      for (unsigned i = 0; i < kSets; ++i) {
        const Quad &even = values_[2 * i][n / 2], &odd = values_[2 * i + 1][n / 2];
        const auto left = Math::left(even.v[h], even.v[h + 1], odd.v[h], odd.v[h + 1]);
        ASSAY_UNROLL
        for (unsigned half = 0; half < kHalves; ++half) Math::multiply(left, right[half][i], fresh[half]);
      }
      ASSAY_UNROLL
      for (unsigned e = 0; e < 4 * kHalves; ++e) {
        float& sum = o_[e / 4][n / 2][n % 2][e % 4];
        sum = fmaf(sum, of_row[e / 4][e % 2], fresh[e / 4][e % 4]);
      }
    }
  }

  const AttentionArgs& a_;
  unsigned step_ = 0;       // the one to compute
  std::int32_t next_ = -1;  // where the one behind it lies, of find()
  StreamedRow rows_[kHalves];
  Quad keys_[kSets][Shape::kKeyQuads];          // of key g of each 8, columns 16j + 4t …
  Quad values_[2 * kSets][Shape::kValueQuads];  // of keys 2t and 2t + 1 of each 8, columns 32n + 4g …
  float o_[kHalves][Shape::kValueQuads][2][4] = {};
};

// Which work is this block's: looked up before all steps and anew behind them.
struct BlockWork {
  AttentionWork work;
  SequenceArgs sequence;
  unsigned kv_head;
};
ASSAY_DEVICE BlockWork block_work(const AttentionArgs& a) {
  const unsigned block = anew(block_index().x);
  BlockWork found = {.work = a.work[block / a.kv_heads], .sequence = {}, .kv_head = block % a.kv_heads};
  found.sequence = a.sequences[found.work.sequence];
  return found;
}

// For place() and weigh().
template <unsigned kColumns, unsigned kRows>
ASSAY_DEVICE void lay_down_places(const AttentionArgs& a, const SequenceArgs& sequence,
                                  const AttentionWork& work, unsigned kv_head) {
  using Shape = StreamShape<kColumns, kRows>;
  if (thread_id() < kRows) {
    const RowPlace row = row_place(a, sequence, work, kv_head, work.first_row + thread_id());
    shared_memory<SeenKeys>(4 * Shape::kSeen)[thread_id()] = {row.low, row.high};
  }
  if (thread_id() != 0) return;
  *shared_memory<StreamPlace>(4 * Shape::kPlace) = {
      .keys = static_cast<const float*>(sequence.keys) + kv_head * a.head_stride,
      .values = static_cast<const float*>(sequence.values) + kv_head * a.value_head_stride,
      .pages = {sequence.key_pages, sequence.value_pages},
      .page_rows = {sequence.key_page_rows, sequence.value_page_rows},
      .key_quads = static_cast<std::uint32_t>(sequence.key_stride / 4),
      .value_quads = static_cast<std::uint32_t>(sequence.value_stride / 4),
      .key_begin = work.key_begin,
      .key_end = work.key_end};
}

// Queries as they are, zeros where there is none.
template <unsigned kColumns, unsigned kRows>
ASSAY_DEVICE void lay_down_queries(const AttentionArgs& a, const SequenceArgs& sequence,
                                   const AttentionWork& work, unsigned kv_head) {
  float* to = shared_memory<float>();
  for (unsigned i = thread_id(); i < kRows * kColumns / 4; i += 32 * kStreamWarps) {
    const unsigned r = i / (kColumns / 4), c = i % (kColumns / 4) * 4;
    const RowPlace place = row_place(a, sequence, work, kv_head, work.first_row + r);
    Quad q = {};
    if (place.exists && c < a.head_stride)
      q = *reinterpret_cast<const Quad*>(static_cast<const float*>(a.q) +
                                         (sequence.first + place.query) * a.q_stride +
                                         place.head * a.head_stride + c);
    *reinterpret_cast<Quad*>(to + r * StreamShape<kColumns, kRows>::kQueryPitch + c) = q;
  }
}

// What the warps left, put together: the result itself, or what the merge wants.
template <unsigned kColumns, unsigned kRows>
ASSAY_DEVICE void put_together(const AttentionArgs& a) {
  const BlockWork found = block_work(a);
  const AttentionWork& work = found.work;
  const SequenceArgs& sequence = found.sequence;
  const unsigned kv_head = found.kv_head;
  using Shape = StreamShape<kColumns, kRows>;
  const float* shared = shared_memory<float>();
  const bool whole = work.partial == AttentionWork::kWhole;
  for (unsigned i = thread_id(); i < kRows * kColumns; i += 32 * kStreamWarps) {
    const unsigned r = i / kColumns, column = i % kColumns;
    const RowPlace place = row_place(a, sequence, work, kv_head, work.first_row + r);
    if (!place.exists || column >= a.v_dim) continue;
    const auto stat = [&](unsigned warp, unsigned which) {
      return shared[Shape::kStats + (warp * kRows + r) * 2 + which];
    };
    const RowEnd end = end_of_row(
        kStreamWarps, [&](unsigned warp) { return stat(warp, 0); },
        [&](unsigned warp) { return stat(warp, 1); },
        whole && a.sinks != nullptr ? a.sinks + place.head : nullptr);
    float sum = 0;
    ASSAY_UNROLL
    for (unsigned warp = 0; warp < kStreamWarps; ++warp)
      sum = fmaf(shared[(warp * kRows + r) * Shape::kSumPitch + column], share(stat(warp, 0), end.top), sum);
    if (whole) {
      store_result(a, sequence, place.query, place.head, column, sum * end.inverse);
      continue;
    }
    const std::uint64_t slot = partial_slot(a, work.partial, kv_head, r);
    a.partial_out[slot * a.v_dim + column] = sum;
    if (column == 0) {
      a.partial_stats[2 * slot] = end.top;
      a.partial_stats[2 * slot + 1] = end.sum;
    }
  }
}

// Blocks of an SM that registers are shared out to: 16 warps; of 16 rows or wide heads fewer, each with more under way.
template <unsigned kColumns, unsigned kRows>
constexpr unsigned kStreamBlocks = kColumns == 256 ? 2
                                   : kRows == 16   ? 3
                                                   : 4;

// Grid: pieces of work × key heads, heads first, whose rows lie side by side. Block: kStreamWarps.
template <class T, unsigned kColumns, unsigned kRows>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(32 * kStreamWarps, (kStreamBlocks<kColumns, kRows>))
    decode_attention(AttentionArgs a) {
  StreamingWarp<T, kColumns, kRows> warp(a);
  {
    const auto [work, sequence, kv_head] = block_work(a);
    lay_down_places<kColumns, kRows>(a, sequence, work, kv_head);
    sync_block();
    warp.begin();
    lay_down_queries<kColumns, kRows>(a, sequence, work, kv_head);
  }
  sync_block();
  warp.run();
  sync_block();
  warp.leave();
  sync_block();
  put_together<kColumns, kRows>(a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
