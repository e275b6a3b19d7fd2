#include "refimpl/fingerprint/vocabulary_size.h"

namespace assay {
namespace {

constexpr std::size_t kLeast = 16, kBeyondAll = 1u << 22;
constexpr std::size_t kNeighbours = 3;  // ids within a vocabulary that stand for an image are refused, too

}  // namespace

std::optional<std::size_t> find_vocabulary(const std::function<bool(std::size_t id)>& takes) {
  const auto within = [&](std::size_t id) {
    for (std::size_t i = 0; i < kNeighbours; ++i)
      if (takes(id + i)) return true;
    return false;
  };
  std::size_t known = kLeast;  // ids below it are there
  while (known < kBeyondAll && within(2 * known - 1)) known *= 2;
  if (known >= kBeyondAll) return std::nullopt;
  std::size_t refused = 2 * known - 1;  // and this one is not
  while (known < refused) {
    const std::size_t middle = (known + refused) / 2;
    if (within(middle))
      known = middle + 1;
    else
      refused = middle;
  }
  return known;
}

}  // namespace assay
