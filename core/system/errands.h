// Small pieces of work that other threads do while the caller goes on: nobody waits for anybody before finish().
//
//   Errands errands(threads);  errands.add(work);  errands.add(work);  errands.finish();
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {

class Errands {
 public:
  // `threads` besides the caller's: started when there is something to do. 0: the caller does all.
  explicit Errands(int threads) : most_(threads) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;
  ~Errands();

  // The caller does a piece itself where too many wait.
  void add(std::function<void()> work);
  // Until all is done, the caller helping; throws what the first piece to fail has thrown.
  void finish();

 private:
  bool do_one(std::unique_lock<std::mutex>& lock);
  void serve(const std::stop_token& stop);

  const int most_;
  std::mutex mutex_;
  std::condition_variable_any something_, done_;
  std::deque<std::function<void()>> waiting_;
  std::size_t at_work_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

}  // namespace assay
