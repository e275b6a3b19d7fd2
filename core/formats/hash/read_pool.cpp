#include "core/formats/hash/read_pool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/formats/hash/page_cache.h"

namespace assay {
namespace {

constexpr std::uint64_t kDropUnit = 64 << 10;

// Reads up to into.size() bytes, in requests of `asked` (into.size(), or that rounded up to whole sectors).
// Returns 0 or errno.
int read_fully(int descriptor, ReadRequest& request, std::size_t asked) {
  while (request.got < request.into.size()) {
    const ssize_t n = ::pread(descriptor, request.into.data() + request.got, asked - request.got,
                              static_cast<off_t>(request.offset + request.got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    request.got += static_cast<std::size_t>(n);
  }
  request.got = std::min(request.got, request.into.size());
  return 0;
}

// Readahead is off, so that what was cached before is known to the page and nothing beyond the range is
// brought in.
int read_and_forget(ReadRequest& request) {
  const int descriptor = request.descriptor;
  std::vector<std::uint64_t> to_drop;
  const std::uint64_t end = request.offset + request.into.size();
  const CacheShare share = cache_share(descriptor, request.offset, request.into.size());
  if (share == CacheShare::some) {
    for (std::uint64_t at = request.offset; at < end; at += kDropUnit) {
      if (cache_share(descriptor, at, std::min(kDropUnit, end - at)) == CacheShare::none)
        to_drop.push_back(at);
    }
  }
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  const int error_number = read_fully(descriptor, request, request.into.size());
  if (share == CacheShare::none) drop_from_cache(descriptor, request.offset, request.into.size());
  for (const std::uint64_t at : to_drop) drop_from_cache(descriptor, at, std::min(kDropUnit, end - at));
  return error_number;
}

int read_uncached(ReadRequest& request) {
  const std::size_t asked =
      (request.into.size() + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
  const int error_number = read_fully(request.direct_descriptor, request, asked);
  if (error_number != EINVAL && error_number != EOPNOTSUPP) return error_number;
  request.got = 0;
  return read_and_forget(request);
}

int read_as_asked(ReadRequest& request) {
  switch (request.mode) {
    case ReadMode::uncached: return read_uncached(request);
    case ReadMode::forgetting: return read_and_forget(request);
    case ReadMode::through_cache: break;
  }
  return read_fully(request.descriptor, request, request.into.size());
}

}  // namespace

void perform(ReadRequest& request) {
  request.got = 0;
  request.error_number = read_as_asked(request);
}

void Wakeup::signal() {
  {
    const std::lock_guard lock(mutex_);
    signalled_ = true;
  }
  condition_.notify_one();
}

void Wakeup::wait_for(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  condition_.wait_for(lock, at_most, [this] { return signalled_; });
  signalled_ = false;
}

ReadPool::~ReadPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ReadPool::submit(ReadRequest& request) {
  request.done.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(&request);
    while (threads_.size() < static_cast<std::size_t>(count_)) {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }
  not_empty_.notify_one();
}

void ReadPool::cancel(std::span<ReadRequest* const> requests) {
  std::unique_lock lock(mutex_);
  for (ReadRequest* request : requests) {
    const auto at = std::find(queue_.begin(), queue_.end(), request);
    if (at == queue_.end()) continue;
    queue_.erase(at);
    request->done.store(true, std::memory_order_relaxed);
  }
  finished_.wait(lock, [&] {
    return std::all_of(requests.begin(), requests.end(), [](const ReadRequest* r) { return r->done.load(); });
  });
}

void ReadPool::work(const std::stop_token& stop) {
  while (true) {
    ReadRequest* request = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (!not_empty_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      request = queue_.front();
      queue_.pop_front();
    }
    perform(*request);
    Wakeup* const wakeup = request->wakeup;
    {
      const std::lock_guard lock(mutex_);
      request->done.store(true, std::memory_order_release);  // from here on it may be gone
    }
    finished_.notify_all();
    wakeup->signal();
  }
}

}  // namespace assay
