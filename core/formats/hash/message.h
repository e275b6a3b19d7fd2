// Messages on their way through SHA-256: each is handed its bytes as they come to hand, and those that have some advance
// together, by the kernels that suit their number.
//
//   reading whole files   hasher.h: several files a thread, read ahead
//   writing files         convert/output_digests: each as far as it has been written without a gap
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/formats/hash/kernel_plan.h"

namespace assay::sha256 {

class Message {
 public:
  // The next bytes, once blocks() is 0: whole blocks, but at the message's end. They have to stay where they are until
  // others are accepted.
  void accept(std::span<const std::byte> bytes) {
    const std::size_t whole = bytes.size() / kBlock * kBlock;
    pending_ = bytes.first(whole);
    tail_ = bytes.subspan(whole);
    length_ += bytes.size();
  }
  std::size_t blocks() const { return pending_.size() / kBlock; }  // to be compressed
  std::uint64_t length() const { return length_; }                 // of what was accepted
  std::array<std::uint8_t, 32> digest() const { return finish(state_, tail_, length_); }

 private:
  friend void advance_together(const KernelPlan& plan, std::span<Message* const> messages);
  State state_ = kInitialState;
  std::span<const std::byte> pending_, tail_;
  std::uint64_t length_ = 0;
};

// Each has blocks, at most kMaxLanes of them: all advance by as many as the one with the fewest has.
void advance_together(const KernelPlan& plan, std::span<Message* const> messages);

}  // namespace assay::sha256
