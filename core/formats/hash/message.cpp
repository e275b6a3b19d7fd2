#include "core/formats/hash/message.h"

#include <algorithm>

namespace assay::sha256 {

void advance_together(const KernelPlan& plan, std::span<Message* const> messages) {
  std::array<State*, kMaxLanes> states;
  std::array<const std::byte*, kMaxLanes> data;
  std::size_t blocks = messages.front()->blocks();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    states[i] = &messages[i]->state_;
    data[i] = messages[i]->pending_.data();
    blocks = std::min(blocks, messages[i]->blocks());
  }
  plan.run(std::span(states).first(messages.size()), std::span(data).first(messages.size()), blocks);
  for (Message* message : messages) message->pending_ = message->pending_.subspan(blocks * kBlock);
}

}  // namespace assay::sha256
