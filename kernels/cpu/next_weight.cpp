#include "kernels/cpu/next_weight.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/team.h"

namespace assay::cpu {
namespace {

// Of a thread's share: what stays in a second-level cache beside the inputs.
constexpr std::size_t kFetched = 256 << 10;
constexpr std::size_t kMostWeights = 1 << 16;  // then everything is learned anew

struct Order {
  std::unordered_map<const std::byte*, WeightInPieces> after;
  const std::byte* last = nullptr;
};

std::span<const std::byte> beginning_of_share(const WeightInPieces& weight, std::size_t thread,
                                              std::size_t threads) {
  const std::size_t begin = weight.pieces * thread / threads, end = weight.pieces * (thread + 1) / threads;
  return {weight.at + begin * weight.piece_bytes, std::min(kFetched, (end - begin) * weight.piece_bytes)};
}

}  // namespace

void fetch_next_after(const WeightInPieces& weight, int jobs) {
  if (jobs < 2) return;
  thread_local Order order;
  if (order.after.size() >= kMostWeights) order.after.clear();
  if (order.last != nullptr) order.after[order.last] = weight;
  order.last = weight.at;
  const auto next = order.after.find(weight.at);
  if (next == order.after.end()) return;
  const auto threads = static_cast<std::size_t>(jobs);
  std::vector<std::span<const std::byte>> shares(threads);
  for (std::size_t i = 1; i < threads; ++i) shares[i] = beginning_of_share(next->second, i, threads);
  fetch_while_waiting(jobs, shares);
}

}  // namespace assay::cpu
