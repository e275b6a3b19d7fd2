#include "kernels/cuda/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/fiber.h"

namespace assay::cuda::emulator {
namespace {

constexpr std::size_t kGuard = 4096;            // bytes beside shared memory that no kernel may touch
constexpr std::size_t kSharedAlignment = 1024;  // what swizzled layouts of sm_90 ask for
constexpr std::byte kGuardByte{0xC5}, kPoison{0xFF};
constexpr std::size_t kMostExchanged =
    64;  // bytes a lane: four registers of A, two of B, four of C, and more
constexpr unsigned kBarriers = 16;

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  bool valid;
};

enum class Doing : std::uint8_t { running, behind_others, at_barrier, at_warp, at_address, ended };

struct Thread {
  Doing doing = Doing::running;
  Where where{"", 0};
  const char* what = "";
  unsigned barrier = 0;                   // 0: the block's
  const void* address = nullptr;          // that it waits at
  bool in_cluster_phase = false;          // has arrived at the cluster's barrier, and not yet passed it
  unsigned cluster_phase = 0;             // in which phase
  unsigned exchanges = 0;                 // how often it has met its warp
  std::vector<std::vector<Copy>> groups;  // committed copies, oldest first
  std::vector<Copy> open;                 // copies not yet committed
};

// Two boards, used in turn: who is ahead writes to the one while who lags reads the other.
struct Warp {
  std::array<std::array<std::byte, kMostExchanged * kWarp>, 2> boards;
  unsigned arrived = 0, first_lane = 0;  // of those that wait; the first, and where it does
  Where where{"", 0};
  const char* what = "";
};

// A barrier of the block or of a part of it.
struct Barrier {
  unsigned arrived = 0, threads = 0;  // threads: of the first that came
  Where where{"", 0};
};

bool same(const Where& a, const Where& b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
}

// "rms_norm.cuh:42"
std::string place(const Where& where) {
  const std::string_view path = where.file;
  const auto slash = path.rfind('/');
  return fmt::format("{}:{}", slash == std::string_view::npos ? path : path.substr(slash + 1), where.line);
}

class Block;

// Blocks that run side by side. Its barrier has two halves: a thread arrives, and waits when it likes.
struct Cluster {
  std::vector<Block*> blocks;
  unsigned arrived = 0, phase = 0;
};

class Block {
 public:
  // For blocks of `launch`, each as begin(), run_warps() until none moves any more, and end().
  void prepare(const Launch& launch, const std::function<void()>& body);
  void begin(Extent3 index, Cluster& cluster, unsigned rank);
  bool run_warps(bool backward);
  void end() const;

  void meet(unsigned barrier, unsigned threads, Where where);
  const std::byte* meet_warp(const void* mine, std::size_t bytes, const char* what, Where where);

  void wait_at(const void* address, const char* what, Where where);
  void wake(const void* address);
  void let_others_run() { wait(Doing::behind_others, Where::here(), "others"); }
  void arrive_cluster(Where where);
  void wait_cluster(Where where);

  Cluster& cluster() const { return *cluster_; }
  unsigned rank() const { return rank_; }
  std::vector<BulkCopy>& bulk_copies() { return bulk_copies_; }
  Thread& me() { return threads_[current_]; }
  unsigned current() const { return current_; }
  unsigned size() const { return static_cast<unsigned>(threads_.size()); }
  const Launch& launch() const { return *launch_; }
  Extent3 index() const { return index_; }
  std::byte* shared() const { return shared_; }

 private:
  static void run_thread(void* self, std::size_t fiber);
  void prepare_shared();
  bool run_warp(unsigned warp, bool backward);
  void wait(Doing doing, Where where, const char* what);
  std::string state_of(unsigned thread) const;
  [[noreturn]] void stuck() const;
  void check_guards() const;

  const Launch* launch_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  FiberPool fibers_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::byte> memory_;
  std::byte* shared_ = nullptr;
  Extent3 index_;
  Cluster* cluster_ = nullptr;
  unsigned rank_ = 0;  // in its cluster
  unsigned current_ = 0;
  std::array<Barrier, kBarriers> barriers_;
  std::vector<BulkCopy> bulk_copies_;
  std::exception_ptr failure_;
};

thread_local Block* running = nullptr;

Block& here() {
  if (running == nullptr) throw Error::internal("a device function was called outside of a kernel");
  return *running;
}

[[noreturn]] void fault(const std::string& what, Where where) {
  throw Error::internal(said_at(where, what));
}

void Block::run_thread(void* self, std::size_t fiber) {
  Block& block = *static_cast<Block*>(self);
  try {
    (*block.body_)();
  } catch (...) {
    block.failure_ = std::current_exception();
  }
  block.threads_[fiber].doing = Doing::ended;
}

void Block::wait(Doing doing, Where where, const char* what) {
  Thread& thread = me();
  thread.doing = doing;
  thread.where = where;
  thread.what = what;
  const unsigned self = current_;
  while (threads_[self].doing != Doing::running) fibers_.pause();
}

void Block::wait_at(const void* address, const char* what, Where where) {
  me().address = address;
  wait(Doing::at_address, where, what);
}

void Block::wake(const void* address) {
  for (Thread& thread : threads_) {
    if (thread.doing == Doing::at_address && thread.address == address) thread.doing = Doing::running;
  }
}

void Block::arrive_cluster(Where where) {
  if (me().in_cluster_phase)
    fault("a thread arrives twice at its cluster's barrier, and has not waited", where);
  Cluster& cluster = *cluster_;
  me().in_cluster_phase = true;
  me().cluster_phase = cluster.phase;
  if (++cluster.arrived < cluster.blocks.size() * size()) return;
  cluster.arrived = 0;
  ++cluster.phase;
  for (Block* block : cluster.blocks) block->wake(&cluster);
  let_others_run();
}

void Block::wait_cluster(Where where) {
  if (!me().in_cluster_phase) fault("a thread waits at its cluster's barrier, and has not arrived", where);
  Thread& thread = me();
  while (cluster_->phase == thread.cluster_phase) wait_at(cluster_, "barrier of the cluster", where);
  thread.in_cluster_phase = false;
}

void Block::meet(unsigned id, unsigned threads, Where where) {
  Barrier& barrier = barriers_[id];
  if (barrier.arrived == 0) {
    barrier.where = where;
    barrier.threads = threads;
  } else if (barrier.threads != threads) {
    fault(fmt::format("barrier {} is for {} threads here and for {} at {}", id, threads, barrier.threads,
                      place(barrier.where)),
          where);
  } else if (id == 0 && !same(barrier.where, where)) {
    fault(fmt::format("thread {} is at this barrier of the block while others are at that of {}", current_,
                      place(barrier.where)),
          where);
  }
  if (++barrier.arrived < threads) {
    me().barrier = id;
    return wait(Doing::at_barrier, where,
                id == 0 ? "barrier of the block" : "barrier of a part of the block");
  }
  barrier.arrived = 0;
  for (Thread& thread : threads_) {
    if (thread.doing == Doing::at_barrier && thread.barrier == id) thread.doing = Doing::running;
  }
}

const std::byte* Block::meet_warp(const void* mine, std::size_t bytes, const char* what, Where where) {
  if (bytes > kMostExchanged) fault("more bytes a thread than warps exchange", where);
  const unsigned first = current_ / kWarp * kWarp;
  Warp& warp = warps_[current_ / kWarp];
  Thread& thread = me();
  std::byte* const board = warp.boards[thread.exchanges++ % 2].data();
  if (bytes != 0) std::memcpy(board + (current_ - first) * bytes, mine, bytes);
  const unsigned lane = current_ - first;
  if (warp.arrived == 0) {
    warp.where = where;
    warp.what = what;
    warp.first_lane = lane;
  } else if (!same(warp.where, where) || std::string_view(warp.what) != what) {
    fault(fmt::format("the warp diverges: lane {} is at {} while lane {} is at {} of {}", lane, what,
                      warp.first_lane, warp.what, place(warp.where)),
          where);
  }
  if (++warp.arrived < kWarp) {
    wait(Doing::at_warp, where, what);
    return board;
  }
  warp.arrived = 0;
  for (unsigned i = first; i < first + kWarp; ++i) threads_[i].doing = Doing::running;
  return board;
}

std::string Block::state_of(unsigned thread) const {
  const Thread& t = threads_[thread];
  if (t.doing == Doing::ended) return "has returned";
  return fmt::format("waits at {} ({})", place(t.where), t.what);
}

void Block::stuck() const {
  // Two threads that wait for each other explain it: the first one, and the first whose state differs.
  unsigned waiting = 0;
  while (threads_[waiting].doing == Doing::ended) ++waiting;
  std::string message = fmt::format("threads diverge in block ({}, {}, {}): thread {} {}", index_.x, index_.y,
                                    index_.z, waiting, state_of(waiting));
  for (unsigned i = 0; i < size(); ++i) {
    if (state_of(i) == state_of(waiting)) continue;
    message += fmt::format(", thread {} {}", i, state_of(i));
    break;
  }
  throw Error::internal(message);
}

void Block::check_guards() const {
  const std::byte* const end = shared_ + launch_->shared_bytes;
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (shared_[-1 - static_cast<std::ptrdiff_t>(i)] != kGuardByte)
      throw Error::internal(fmt::format("shared memory was written {} bytes before its begin", i + 1));
    if (end[i] != kGuardByte)
      throw Error::internal(fmt::format("shared memory was written {} bytes behind its end of {}", i + 1,
                                        launch_->shared_bytes));
  }
}

void Block::prepare_shared() {
  const std::size_t bytes = launch_->shared_bytes;
  memory_.assign(bytes + 2 * kGuard + kSharedAlignment, kGuardByte);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
  const std::size_t skip = (kSharedAlignment - begin % kSharedAlignment) % kSharedAlignment;
  shared_ = memory_.data() + kGuard + skip;
}

// A warp as far as it gets by itself; whether any of its threads moved.
bool Block::run_warp(unsigned warp, bool backward) {
  for (unsigned i = warp * kWarp; i < (warp + 1) * kWarp; ++i) {
    if (threads_[i].doing == Doing::behind_others) threads_[i].doing = Doing::running;
  }
  bool moved = false;
  for (bool again = true; again;) {
    again = false;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      current_ = warp * kWarp + (backward ? kWarp - 1 - lane : lane);
      if (threads_[current_].doing != Doing::running) continue;
      fibers_.resume(current_);
      if (failure_) std::rethrow_exception(failure_);
      moved = again = true;
    }
  }
  return moved;
}

void Block::begin(Extent3 index, Cluster& cluster, unsigned rank) {
  index_ = index;
  cluster_ = &cluster;
  rank_ = rank;
  for (Barrier& barrier : barriers_) barrier.arrived = 0;
  bulk_copies_.clear();
  for (Thread& thread : threads_) {
    thread.doing = Doing::running;
    thread.exchanges = 0;
    thread.groups.clear();
    thread.open.clear();
    thread.in_cluster_phase = false;
  }
  for (Warp& warp : warps_) warp.arrived = 0;
  std::fill_n(shared_, launch_->shared_bytes, kPoison);
  fibers_.reset(threads_.size(), &Block::run_thread, this);
}

bool Block::run_warps(bool backward) {
  const auto warps = static_cast<unsigned>(warps_.size());
  bool moved = false;
  for (unsigned w = 0; w < warps; ++w) moved |= run_warp(backward ? warps - 1 - w : w, backward);
  return moved;
}

void Block::end() const {
  for (const Thread& thread : threads_) {
    if (thread.doing != Doing::ended) stuck();
  }
  if (!bulk_copies_.empty())
    throw Error::internal(fmt::format("a block ended with {} bulk copies under way: nobody waited for them",
                                      bulk_copies_.size()));
  check_guards();
}

void Block::prepare(const Launch& launch, const std::function<void()>& body) {
  launch_ = &launch;
  body_ = &body;
  failure_ = nullptr;
  threads_.resize(launch.block.x);
  warps_.resize(launch.block.x / kWarp);
  prepare_shared();
}

Extent3 index_of(const Extent3& grid, unsigned long long block) {
  const unsigned long long plane = 1ull * grid.x * grid.y;
  return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block % plane / grid.x),
          static_cast<unsigned>(block / plane)};
}

// Clusters one after the other, the blocks of one in turns: each as far as it gets by itself.
void run_clusters(const Launch& launch, const std::vector<Block*>& blocks) {
  static std::atomic<unsigned> launches{0};
  const bool backward =
      launch.order == Order::backward || (launch.order == Order::alternating && launches++ % 2 == 1);
  const unsigned long long clusters = launch.grid.count() / launch.cluster;
  for (unsigned long long i = 0; i < clusters; ++i) {
    const unsigned long long first = (backward ? clusters - 1 - i : i) * launch.cluster;
    Cluster cluster{blocks};
    for (unsigned rank = 0; rank < launch.cluster; ++rank)
      blocks[rank]->begin(index_of(launch.grid, first + rank), cluster, rank);
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned r = 0; r < launch.cluster; ++r) {
        running = blocks[backward ? launch.cluster - 1 - r : r];
        moved |= running->run_warps(backward);
      }
    }
    for (const Block* block : blocks) block->end();
  }
}

void land(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    if (copy.valid)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
  }
}

}  // namespace

void run(const Launch& launch, const std::function<void()>& thread) {
  if (launch.block.x == 0 || launch.block.x % kWarp != 0 || launch.block.y != 1 || launch.block.z != 1 ||
      launch.block.x > 1024)
    throw Error::internal("an emulated block is whole warps in one dimension, 1024 threads at most");
  if (launch.cluster == 0 || launch.cluster > 8 || launch.grid.x % launch.cluster != 0)
    throw Error::internal("a cluster is 1 to 8 blocks, and a grid whole clusters");
  static thread_local std::vector<std::unique_ptr<Block>> spare;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Block*> side_by_side;
  for (unsigned i = 0; i < launch.cluster; ++i) {
    if (spare.empty()) spare.push_back(std::make_unique<Block>());
    blocks.push_back(std::move(spare.back()));
    spare.pop_back();
    blocks.back()->prepare(launch, thread);
    side_by_side.push_back(blocks.back().get());
  }
  Block* const outer = running;
  try {
    run_clusters(launch, side_by_side);
  } catch (...) {
    running = outer;
    throw;  // fibers are where they are: these blocks are not used again
  }
  running = outer;
  for (std::unique_ptr<Block>& block : blocks) spare.push_back(std::move(block));
}

unsigned thread_id() {
  return here().current();
}
unsigned thread_count() {
  return here().size();
}
Extent3 block_index() {
  return here().index();
}
Extent3 grid_size() {
  return here().launch().grid;
}
std::byte* shared_memory() {
  return here().shared();
}

void arrive_cluster(Where where) {
  here().arrive_cluster(where);
}
void wait_cluster(Where where) {
  here().wait_cluster(where);
}
unsigned cluster_rank() {
  return here().rank();
}
unsigned cluster_size() {
  return static_cast<unsigned>(here().cluster().blocks.size());
}
std::byte* shared_memory_of(unsigned rank) {
  return here().cluster().blocks.at(rank)->shared();
}

void sync_block(Where where) {
  Block& block = here();
  block.meet(0, block.size(), where);
}
void sync_group(unsigned id, unsigned threads, Where where) {
  Block& block = here();
  if (id == 0 || id >= kBarriers || threads == 0 || threads % kWarp != 0 || threads > block.size())
    fault(fmt::format("barrier {} of {} threads: 1 to 15, of whole warps of the block", id, threads), where);
  block.meet(id, threads, where);
}
const std::byte* exchange(const void* mine, std::size_t bytes, const char* what, Where where) {
  return here().meet_warp(mine, bytes, what, where);
}

void wait_at(const void* address, const char* what, Where where) {
  here().wait_at(address, what, where);
}
void wake(const void* address) {
  for (Block* block : here().cluster().blocks) block->wake(address);
}
void let_others_run() {
  here().let_others_run();
}
std::vector<BulkCopy>& bulk_copies(unsigned rank) {
  return here().cluster().blocks.at(rank)->bulk_copies();
}
std::string said_at(const Where& where, std::string_view what) {
  return fmt::format("{}: {}", place(where), what);
}

void require_shared(const void* address, std::size_t bytes, std::size_t alignment, Where where) {
  const Block& block = here();
  const auto begin = reinterpret_cast<std::uintptr_t>(block.shared());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t size = block.launch().shared_bytes;
  if (at < begin || at - begin > size || size - (at - begin) < bytes)
    fault(fmt::format("{} bytes at {} of {} bytes of shared memory", bytes,
                      static_cast<std::ptrdiff_t>(at - begin), size),
          where);
  if (at % alignment != 0)
    fault(fmt::format("byte {} of shared memory is not aligned to {}", at - begin, alignment), where);
}

void copy_async(void* shared, const void* global, std::size_t bytes, bool valid, Where where) {
  require_shared(shared, bytes, bytes, where);
  if (valid && reinterpret_cast<std::uintptr_t>(global) % bytes != 0)
    fault(fmt::format("the source of an asynchronous copy is not aligned to {} bytes", bytes), where);
  std::memset(shared, static_cast<int>(kPoison), bytes);
  here().me().open.push_back(
      {static_cast<std::byte*>(shared), static_cast<const std::byte*>(global), bytes, valid});
}
void commit_copies() {
  Thread& me = here().me();
  me.groups.push_back(std::move(me.open));
  me.open.clear();
}
void wait_for_copies(unsigned groups_left) {
  Thread& me = here().me();
  while (me.groups.size() > groups_left) {
    land(me.groups.front());
    me.groups.erase(me.groups.begin());
  }
}

}  // namespace assay::cuda::emulator
