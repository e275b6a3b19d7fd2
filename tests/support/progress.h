// How far one thread came, for another that waits for it: orders are counted, not timed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace assay::test {

class Progress {
 public:
  void next() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void again() {
    const std::lock_guard lock(mutex_);
    count_ = 0;
  }
  // False: it did not come within ten seconds, which a computation that waits for what waits for it never does.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

}  // namespace assay::test
