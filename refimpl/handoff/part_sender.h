// Parts on their way: packed and put into a sink by a thread of its own, so that whoever computes goes on.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "refimpl/handoff/prefill.h"

namespace assay {

class PartSender {
 public:
  // Every part begins with this: identity, text, the hand-off's number.
  PartSender(const PartHeader& common, PartSink& sink, HandoffClock::time_point start);
  PartSender(const PartSender&) = delete;
  PartSender& operator=(const PartSender&) = delete;
  ~PartSender();

  // Before it nothing goes.
  void start();
  // In the order of the calls; they throw what the sink threw. `counted`: the layer whose time and bytes these are.
  void send(const PartHeader& header, HandoffMade::Numbers numbers, NumberWidth width,
            std::optional<std::size_t> counted = {});
  void send(PartKind kind, std::string text);
  // All went. `sent` has when, and how much.
  void finish(HandoffSent& sent);
  std::uint64_t queued() const { return queued_; }  // parts, gone or not

 private:
  struct Job {
    PartHeader header;
    HandoffMade::Numbers numbers;
    NumberWidth width;
    std::string text;
    std::optional<std::size_t> counted;
  };
  struct Gone {
    std::optional<std::size_t> counted;
    TimeSpan span;
    std::uint64_t bytes;
  };
  void queue(Job job);
  void work();
  void go(const Job& job, std::uint64_t serial);
  double now() const { return std::chrono::duration<double>(HandoffClock::now() - start_).count(); }

  PartHeader common_;
  PartSink& sink_;
  HandoffClock::time_point start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool over_ = false;
  std::uint64_t queued_ = 0;
  std::exception_ptr failure_;
  std::vector<Gone> gone_;
  std::thread thread_;
};

}  // namespace assay
