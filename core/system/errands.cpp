#include "core/system/errands.h"

#include <utility>

namespace assay {
namespace {

constexpr std::size_t kWaitingEach = 4;  // for each thread: enough that none runs out of work

}  // namespace

Errands::~Errands() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Errands::add(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(std::move(work));
  while (threads_.size() < static_cast<std::size_t>(most_))
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  if (waiting_.size() > kWaitingEach * threads_.size()) {
    do_one(lock);
  } else {
    lock.unlock();
    something_.notify_one();
  }
}

void Errands::finish() {
  std::unique_lock lock(mutex_);
  while (do_one(lock)) {
  }
  done_.wait(lock, [this] { return at_work_ == 0; });
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool Errands::do_one(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty()) return false;
  const std::function<void()> work = std::move(waiting_.front());
  waiting_.pop_front();
  ++at_work_;
  lock.unlock();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure_ == nullptr) failure_ = std::move(failure);
  if (--at_work_ == 0) done_.notify_all();
  return true;
}

void Errands::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (something_.wait(lock, stop, [this] { return !waiting_.empty(); })) do_one(lock);
}

}  // namespace assay
