// Threads that do nothing but wait for the disk (or copy from the page cache), so that hashing threads need
// not.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace assay {

// One thread sleeps on it, any number wake it.
class Wakeup {
 public:
  void signal();
  void wait_for(std::chrono::milliseconds at_most);  // returns at once if signalled since the last wait

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool signalled_ = false;
};

enum class ReadMode {
  through_cache,  // plain
  uncached,       // O_DIRECT; where that turns out to be refused, as `forgetting`
  forgetting,     // plain, and what was not cached before leaves the cache again
};

struct ReadRequest {
  int descriptor = -1, direct_descriptor = -1;
  ReadMode mode = ReadMode::through_cache;
  std::uint64_t offset = 0;
  std::span<std::byte> into;  // for `uncached`: address and offset aligned, room for the length rounded up
  Wakeup* wakeup = nullptr;

  std::size_t got = 0;   // less than asked: the file ends there
  int error_number = 0;  // errno of the read that failed
  std::atomic<bool> done{false};
};

// On this thread; all but `done`.
void perform(ReadRequest& request);

class ReadPool {
 public:
  explicit ReadPool(int threads) : count_(threads) {}
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;
  ~ReadPool();

  // The request must stay alive until done, or until cancel() returns. First come, first served.
  void submit(ReadRequest& request);
  // Forgets those not begun; waits for those that are.
  void cancel(std::span<ReadRequest* const> requests);

 private:
  void work(const std::stop_token& stop);
  int count_;
  std::mutex mutex_;
  std::condition_variable_any not_empty_, finished_;
  std::deque<ReadRequest*> queue_;
  std::vector<std::jthread> threads_;  // started with the first request
};

}  // namespace assay
