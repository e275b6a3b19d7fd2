#include "refimpl/handoff/part_stream.h"

#include "core/system/error.h"

namespace assay {

void PartQueue::put(std::uint64_t, std::span<const std::byte> part) {
  const std::lock_guard lock(mutex_);
  if (!refused_.empty()) throw Error::input("the decoder refused it: " + refused_);
  parts_.emplace_back(part.begin(), part.end());
  changed_.notify_all();
}

std::vector<std::byte> PartQueue::next(std::uint64_t) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !parts_.empty() || ended_; });
  if (parts_.empty()) throw Error::io("the prefill ended before its hand-off was whole");
  std::vector<std::byte> part = std::move(parts_.front());
  parts_.pop_front();
  return part;
}

void PartQueue::refuse(const std::string& why) {
  const std::lock_guard lock(mutex_);
  refused_ = why;
}

void PartQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace assay
