// How parts of a hand-off travel: in order, one writer, one reader.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace assay {

using HandoffClock = std::chrono::steady_clock;
using Patience = std::chrono::milliseconds;  // with a side from which nothing comes
inline constexpr Patience kUsualPatience{60'000};

class PartSink {
 public:
  virtual ~PartSink() = default;
  // Throws Error::io where the other side is gone, and Error::input with its reason where it refused a part.
  virtual void put(std::uint64_t serial, std::span<const std::byte> part) = 0;
  // All is there: waits for the other side's word, where there is one. Not called: what was put is of no use, and
  // goes.
  virtual void close() = 0;
};

class PartSource {
 public:
  virtual ~PartSource() = default;
  // Waits for it. Throws Error::io where it will not come.
  virtual std::vector<std::byte> next(std::uint64_t serial) = 0;
  virtual void taken() = 0;  // all of it was right
  virtual void refuse(
      const std::string& why) = 0;  // is told to the other side, where it listens; throws nothing
  virtual void done() {}            // nobody needs it any more
};

// Between two threads.
class PartQueue : public PartSink, public PartSource {
 public:
  void put(std::uint64_t serial, std::span<const std::byte> part) override;
  void close() override {}
  std::vector<std::byte> next(std::uint64_t serial) override;
  void taken() override {}
  void refuse(const std::string& why) override;
  // Nothing more will be put.
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> parts_;
  bool ended_ = false;
  std::string refused_;
};

}  // namespace assay
