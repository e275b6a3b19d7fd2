#include "kernels/cpu/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cpu/shared_loops.h"

namespace assay::cpu {
namespace {

constexpr std::chrono::microseconds kLooks{100};  // for work, before sleeping
constexpr int kTurns = 64;                        // of waiting between looks at the clock

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

thread_local bool t_in_loop = false;
thread_local std::size_t t_shared_loops = 0;

// Pieces [begin, end) that nobody has taken.
class alignas(64) Share {
 public:
  void set(std::size_t begin, std::size_t end) { range_ = begin << 32 | end; }
  std::optional<std::size_t> first() {
    std::uint64_t range = range_;
    while (begin(range) < end(range)) {
      if (range_.compare_exchange_weak(range, range + (std::uint64_t{1} << 32))) return begin(range);
    }
    return std::nullopt;
  }
  std::optional<std::size_t> last() {
    std::uint64_t range = range_;
    while (begin(range) < end(range)) {
      if (range_.compare_exchange_weak(range, range - 1)) return end(range) - 1;
    }
    return std::nullopt;
  }

 private:
  static std::size_t begin(std::uint64_t range) { return range >> 32; }
  static std::size_t end(std::uint64_t range) { return range & 0xFFFFFFFFu; }
  std::atomic<std::uint64_t> range_{0};
};
constexpr std::size_t kMostPieces = 0xFFFFFFFF;

// Cache lines that a waiting thread may fetch: an address of 48 bits and how many are left, in one word, so that whoever
// sets them anew needs no lock.
class alignas(64) LinesAhead {
 public:
  void set(std::span<const std::byte> bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    lines_.store(at << 16 | std::min<std::size_t>(bytes.size() / kLine, 0xFFFF), std::memory_order_relaxed);
  }
  // Some of them; false where there is none.
  bool fetch() {
    const std::uint64_t lines = lines_.load(std::memory_order_relaxed), left = lines & 0xFFFF;
    if (left == 0) return false;
    const std::uint64_t now = std::min(left, kAtOnce);
    for (std::uint64_t i = 0; i < now; ++i)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(lines >> 16) + i * kLine, 0, 2);
    lines_.store(lines + (now * kLine << 16) - now, std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr std::uint64_t kLine = 64, kAtOnce = 8;
  std::atomic<std::uint64_t> lines_{0};
};

class Team {
 public:
  explicit Team(int jobs) : shares_(static_cast<std::size_t>(jobs)), ahead_(static_cast<std::size_t>(jobs)) {
    for (std::size_t i = 1; i < shares_.size(); ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    leaving_ = true;
    ++loop_;
    loop_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void fetch_while_waiting(std::span<const std::span<const std::byte>> of_threads) {
    for (std::size_t i = 0; i < ahead_.size(); ++i) ahead_[i].set(of_threads[i]);
  }

  // False where a loop is under way already.
  bool run(std::size_t count, const std::function<void(std::size_t)>& body) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    body_ = &body;
    for (std::size_t i = 0; i < shares_.size(); ++i)
      shares_[i].set(count * i / shares_.size(), count * (i + 1) / shares_.size());
    failure_ = nullptr;
    open_ = true;
    ++loop_;
    if (sleeping_ > 0) loop_.notify_all();
    work(0);
    // Nobody enters from here on; who is inside finishes the piece in hand.
    open_ = false;
    for (int turn = 0; inside_ > 0; ++turn) turn < 4096 ? pause() : std::this_thread::yield();
    if (failure_) std::rethrow_exception(failure_);
    return true;
  }

 private:
  // A share's own thread takes its pieces in order, those that are done with theirs take its last ones.
  void work(std::size_t thread) {
    t_in_loop = true;
    try {
      while (const std::optional<std::size_t> piece = shares_[thread].first()) (*body_)(*piece);
      for (Share& other : shares_) {
        while (const std::optional<std::size_t> piece = other.last()) (*body_)(*piece);
      }
    } catch (...) {
      for (Share& share : shares_) share.set(0, 0);
      const std::lock_guard lock(failing_);
      if (!failure_) failure_ = std::current_exception();
    }
    t_in_loop = false;
  }

  void serve(std::size_t thread) {
    for (std::size_t seen = 0; !leaving_;) {
      seen = next_loop(seen, ahead_[thread]);
      ++inside_;
      if (open_) work(thread);
      --inside_;
    }
  }

  // Waits for a loop that is not `seen`.
  std::size_t next_loop(std::size_t seen, LinesAhead& ahead) {
    using Clock = std::chrono::steady_clock;
    for (const Clock::time_point until = Clock::now() + kLooks; Clock::now() < until;) {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (const std::size_t now = loop_; now != seen) return now;
        if (!ahead.fetch()) pause();
      }
    }
    ++sleeping_;
    loop_.wait(seen);
    --sleeping_;
    return loop_;
  }

  std::mutex mutex_, failing_;
  // Written before open_ is set, read by those who entered and found it so.
  const std::function<void(std::size_t)>* body_ = nullptr;
  std::exception_ptr failure_;
  std::vector<Share> shares_;
  std::vector<LinesAhead> ahead_;
  alignas(64) std::atomic<std::size_t> loop_{0};
  std::atomic<int> sleeping_{0};
  alignas(64) std::atomic<int> inside_{0};
  std::atomic<bool> open_{false}, leaving_{false};
  std::vector<std::thread> threads_;  // the last: they begin by looking at all of the above
};

Team& team_of(int jobs) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Team>> teams;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Team>& team = teams[jobs];
  if (!team) team = std::make_unique<Team>(jobs);
  return *team;
}

}  // namespace

std::size_t shared_loops() {
  return t_shared_loops;
}

void fetch_while_waiting(std::span<const std::span<const std::byte>> of_threads) {
  if (of_threads.size() > 1 && !t_in_loop)
    team_of(static_cast<int>(of_threads.size())).fetch_while_waiting(of_threads);
}

void team_for(int jobs, std::size_t count, const std::function<void(std::size_t)>& body) {
  if (jobs > 1 && count > 1) ++t_shared_loops;
  if (jobs > 1 && count > 1 && count <= kMostPieces && !t_in_loop && team_of(jobs).run(count, body)) return;
  for (std::size_t i = 0; i < count; ++i) body(i);
}

}  // namespace assay::cpu
