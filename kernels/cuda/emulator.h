// Kernels on the host: every thread of a block is a fiber, blocks run one after the other, and what threads
// of a warp or a block do together is a meeting point that none passes before all have come. So the indexing,
// masks, barriers and reductions of a kernel are tested where there is no GPU, from the very source that nvcc
// compiles.
//
// It is strict where hardware is forgiving or undefined:
//   - shared memory is NaN before it is written (all bits 1), and has guards on both sides;
//   - a copy by cp.async is NaN from the moment it is begun until it was waited for;
//   - threads that should meet and do not (another barrier, an early return, a diverged warp) are an Error;
//   - warps run as far ahead of each other as barriers let them, and every second launch runs threads and
//     blocks in the reverse order, so that a missing barrier shows in one of two.
// What it cannot show is said in docs/cuda.md.
//
// Kernels do not call these functions; device.cuh does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/extent.h"

namespace assay::cuda::emulator {

// A place in a kernel's source, of messages: the line that called a primitive.
struct Where {
  const char* file;
  int line;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Order : std::uint8_t { alternating, forward, backward };

struct Launch {
  Extent3 grid, block;
  std::size_t shared_bytes = 0;
  Order order = Order::alternating;
  unsigned cluster =
      1;  // blocks that follow each other in x, run side by side and reach each other's shared memory
};
// Runs `thread` once as every thread of every block. Throws Error::internal for what a kernel must not do.
void run(const Launch& launch, const std::function<void()>& thread);

// --- of the thread that runs now

unsigned thread_id();
unsigned thread_count();
Extent3 block_index();
Extent3 grid_size();
std::byte* shared_memory();

void sync_block(Where where);
// Of all threads of the cluster: what each has to do before the others pass, and where it does not pass before they
// have. By turns.
void arrive_cluster(Where where);
void wait_cluster(Where where);
// Of the block's cluster: the block's number; the shared memory of block `rank`.
unsigned cluster_rank();
unsigned cluster_size();
std::byte* shared_memory_of(unsigned rank);
// Barrier `id` of hardware's sixteen, for `threads` threads of the block: whole warps.
void sync_group(unsigned id, unsigned threads, Where where);

// Each of a warp's 32 threads hands in `bytes` bytes; all of theirs, one after the other in the order of
// lanes, are valid until the thread's next meeting point.
const std::byte* exchange(const void* mine, std::size_t bytes, const char* what, Where where);

// cp.async, of this thread alone.
void copy_async(void* shared, const void* global, std::size_t bytes, bool valid, Where where);
void commit_copies();
void wait_for_copies(unsigned groups_left);

// The thread waits until somebody calls wake() of the same address, or for nothing: who waits looks again.
void wait_at(const void* address, const char* what, Where where);
void wake(const void* address);
// Everybody else who can goes on first: what a thread still does behind a word that others may go on is seen too late.
void let_others_run();

// Copies to a block of the cluster that report to a barrier in its shared memory when they land, oldest first. A block
// must not end before all have.
struct BulkCopy {
  const void* barrier;
  std::size_t bytes;
  std::function<void()> land;
};
std::vector<BulkCopy>& bulk_copies(unsigned rank = cluster_rank());

// "gemm.cuh:42: what"
std::string said_at(const Where& where, std::string_view what);

// Throws unless [address, address + bytes) lies in shared memory, aligned.
void require_shared(const void* address, std::size_t bytes, std::size_t alignment, Where where);

}  // namespace assay::cuda::emulator
