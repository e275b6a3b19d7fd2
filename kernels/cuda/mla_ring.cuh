// The steps of a piece of mla_attention.cuh's work, one after the other, through a ring of stages in shared memory.
//
//   ring.start();                       // steps on their way
//   for (…) {
//     const T* keys = ring.take();      // the next one's rows, for all threads of the block
//     …
//     ring.give_back();
//   }
//   ring.finish();
#pragma once

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/mbarrier.cuh"
#include "kernels/cuda/memory.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// By cp.async of all threads.
template <class T>
class MlaRing {
 public:
  ASSAY_DEVICE MlaRing(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : a_(a), sequence_(sequence), work_(work), next_(work.key_begin / a.tiling.keys) {}

  // Steps on their way before the first is taken.
  ASSAY_DEVICE void start() {
    find_rows(next_);
    for (unsigned i = 0; i + 1 < a_.tiling.stages; ++i) {
      sync_block();
      load_next();
    }
  }
  // The next step's rows, for all threads of the block; after give_back() of the one before.
  ASSAY_DEVICE const T* take() {
    if (a_.tiling.stages == 1) {
      sync_block();
      load_next();
      cp_async_wait<0>();
      sync_block();
      return slot(0);
    }
    if (a_.tiling.stages == 3)
      cp_async_wait<1>();
    else
      cp_async_wait<0>();
    sync_block();
    load_next();
    const T* rows = slot(taken_);
    taken_ = after(taken_);
    return rows;
  }
  // The next take() meets the block, and with it all who read a step.
  ASSAY_DEVICE void give_back() {}
  ASSAY_DEVICE void finish() {}

 private:
  ASSAY_DEVICE unsigned after(unsigned i) const { return i + 1 == a_.tiling.stages ? 0 : i + 1; }
  ASSAY_DEVICE T* slot(unsigned i) const {
    return shared_memory<T>(a_.tiling.ring) + i * (a_.tiling.keys * a_.tiling.key_pitch);
  }
  ASSAY_DEVICE std::int32_t* rows(unsigned step) const {
    return shared_memory<std::int32_t>(a_.tiling.rows_found) + step % 2 * a_.tiling.keys;
  }
  ASSAY_DEVICE void find_rows(unsigned step) {
    if (thread_id() >= a_.tiling.keys) return;
    const unsigned position = step * a_.tiling.keys + thread_id();
    const bool there = position >= work_.key_begin && position < work_.key_end;
    rows(step)[thread_id()] = there ? row_of(sequence_.key_pages, sequence_.key_page_rows, position) : -1;
  }
  // Loads the next step, if there is one; its rows were found before the last barrier.
  ASSAY_DEVICE void load_next() {
    if (next_ * a_.tiling.keys < work_.key_end) {
      load();
      loaded_ = after(loaded_);
      find_rows(++next_);
    }
    cp_async_commit();
  }
  ASSAY_DEVICE void load() {
    constexpr unsigned kVector = TileMath<T>::kVector;
    const unsigned pitch = a_.tiling.key_pitch, vectors = (pitch - kVector) / kVector;
    const T* from = static_cast<const T*>(sequence_.keys);
    T* to = slot(loaded_);
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
  unsigned next_;  // step to be loaded
  unsigned loaded_ = 0, taken_ = 0;
};

// Of two blocks side by side, whose tiles of rows read the same keys: each asks the copy engine for half of a step's
// rows, which brings them to both, so that the pair reads the cache once. A row is one copy, whatever page it is in.
// A step has 32 rows, one for each lane of the first warp, of whole 16 columns.
template <class T>
class MlaPairRing {
 public:
  static constexpr unsigned kRows = 32;  // of a step

  ASSAY_DEVICE MlaPairRing(const AttentionArgs& a, const SequenceArgs& sequence, const AttentionWork& work)
      : a_(a), sequence_(sequence), work_(work), next_(work.key_begin / kRows) {}

  ASSAY_DEVICE void start() {
    if (thread_id() == 0) {
      for (unsigned i = 0; i < a_.tiling.stages; ++i) mbarrier_init(full(i), 1);
      mbarriers_ready();
    }
    find_row();
    arrive_cluster();
    wait_cluster();  // the other block's barriers are made
    for (unsigned i = 0; i + 1 < a_.tiling.stages; ++i) load_next();
    arrive_cluster();
  }
  ASSAY_DEVICE const T* take() {
    wait_cluster();  // both blocks have done with the step before, whose place is filled again
    load_next();
    mbarrier_wait(full(taken_), phase_);
    const T* rows = slot(taken_);
    taken_ = after(taken_);
    if (taken_ == 0) phase_ ^= 1;
    return rows;
  }
  ASSAY_DEVICE void give_back() { arrive_cluster(); }
  ASSAY_DEVICE void finish() { wait_cluster(); }

 private:
  ASSAY_DEVICE unsigned after(unsigned i) const { return i + 1 == a_.tiling.stages ? 0 : i + 1; }
  ASSAY_DEVICE T* slot(unsigned i) const {
    return shared_memory<T>(a_.tiling.ring) + i * (kRows * a_.tiling.key_pitch);
  }
  ASSAY_DEVICE Mbarrier* full(unsigned i) const { return shared_memory<Mbarrier>(a_.tiling.rows_found) + i; }

  // Of the step to be loaded next, this lane's: looked up a step before it is needed.
  ASSAY_DEVICE void find_row() {
    const unsigned position = next_ * kRows + lane_id();
    if (warp_id() == 0 && position < work_.key_end)
      row_ = row_of(sequence_.key_pages, sequence_.key_page_rows, position);
  }
  ASSAY_DEVICE void load_next() {
    if (next_ * kRows >= work_.key_end) return;
    const unsigned left = work_.key_end - next_ * kRows, rows = left < kRows ? left : kRows;
    if (warp_id() == 0) ask(rows);
    fill_with_zeros(rows);
    loaded_ = after(loaded_);
    ++next_;
    find_row();
  }
  ASSAY_DEVICE void ask(unsigned rows) {
    const auto bytes = static_cast<unsigned>(a_.head_stride * sizeof(T));
    if (lane_id() == 0) mbarrier_expect(full(loaded_), rows * bytes);
    if (lane_id() >= rows || lane_id() / (kRows / 2) != cluster_rank()) return;
    const T* from =
        static_cast<const T*>(sequence_.keys) + static_cast<std::uint64_t>(row_) * sequence_.key_stride;
    copy_to_cluster(slot(loaded_) + lane_id() * a_.tiling.key_pitch, from, bytes, full(loaded_), 3);
  }
  // Rows behind the last key: their weights are 0, and what they are multiplied with must be numbers.
  ASSAY_DEVICE void fill_with_zeros(unsigned rows) {
    constexpr unsigned kVector = TileMath<T>::kVector;
    const unsigned vectors = a_.head_stride / kVector;
    for (unsigned i = rows * vectors + thread_id(); i < kRows * vectors; i += kMlaWarps * 32)
      *reinterpret_cast<Quad*>(slot(loaded_) + i / vectors * a_.tiling.key_pitch +
                               i % vectors * kVector) = {};
  }

  const AttentionArgs& a_;
  const SequenceArgs& sequence_;
  const AttentionWork& work_;
  unsigned next_;  // step to be loaded
  std::int32_t row_ = 0;
  unsigned loaded_ = 0, taken_ = 0, phase_ = 0;
};

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
