#include "kernels/cpu/next_weight.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "kernels/cpu/team.h"

namespace assay::cpu {
namespace {

constexpr std::size_t kFetched = 256 << 10;    // stays in a second-level cache beside the inputs
constexpr std::size_t kMostWeights = 1 << 16;  // then everything is learned anew

struct Order {
  std::unordered_map<const std::byte*, std::vector<std::span<const std::byte>>> after;
  const std::byte* last = nullptr;
};

}  // namespace

void fetch_next_after(const std::byte* first, std::vector<std::span<const std::byte>> beginnings) {
  thread_local Order order;
  for (std::span<const std::byte>& bytes : beginnings) bytes = bytes.first(std::min(bytes.size(), kFetched));
  if (!beginnings.empty()) beginnings.front() = {};  // of the thread that does not wait
  if (order.after.size() >= kMostWeights) order.after.clear();
  if (order.last != nullptr) order.after[order.last] = std::move(beginnings);
  order.last = first;
  if (const auto next = order.after.find(first); next != order.after.end()) fetch_while_waiting(next->second);
}

}  // namespace assay::cpu
