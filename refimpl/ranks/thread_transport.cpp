#include "refimpl/ranks/thread_transport.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// What all threads share: letters by sender, addressee and channel.
struct PostOffice {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::tuple<std::size_t, std::size_t, int>, std::deque<Transport::Message>> letters;
  std::exception_ptr failure;  // of the first rank that failed
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(PostOffice& office, std::size_t rank, std::size_t size, std::chrono::milliseconds limit)
      : Transport(limit), office_(office), rank_(rank), size_(size) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  void send(std::size_t to, int channel, Message message) override {
    const std::lock_guard lock(office_.mutex);
    office_.letters[{rank_, to, channel}].push_back(std::move(message));
    office_.arrived.notify_all();
  }

  Message receive(std::size_t from, int channel) override {
    constexpr std::chrono::milliseconds kLook(20);  // how often Ctrl-C is asked after
    const auto end = std::chrono::steady_clock::now() + limit();
    std::unique_lock lock(office_.mutex);
    std::deque<Message>& box = office_.letters[{from, rank_, channel}];
    while (box.empty()) {
      if (office_.failure) throw Error::io(fmt::format("rank {} ended, for another failed", rank_));
      if (interrupted()) throw RanksInterrupted{};
      if (std::chrono::steady_clock::now() >= end)
        throw Error::io(fmt::format("rank {} waited {} ms for rank {}, which takes no part", rank_,
                                    limit().count(), from));
      office_.arrived.wait_for(lock, kLook);
    }
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }

 private:
  PostOffice& office_;
  std::size_t rank_, size_;
};

}  // namespace

void run_on_threads(std::size_t ranks, std::chrono::milliseconds limit,
                    const std::function<void(Transport&)>& body) {
  PostOffice office;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadTransport transport(office, rank, ranks, limit);
        body(transport);
      } catch (...) {
        const std::lock_guard lock(office.mutex);
        if (!office.failure) office.failure = std::current_exception();
        office.arrived.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (office.failure) std::rethrow_exception(office.failure);
}

}  // namespace assay
