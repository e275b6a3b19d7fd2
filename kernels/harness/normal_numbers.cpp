#include "kernels/harness/normal_numbers.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/system/threads.h"
#include "kernels/harness/inputs.h"

namespace assay {
namespace {

constexpr std::size_t kMostKept = (std::size_t{256} << 20) / sizeof(double);
constexpr std::size_t kMostOfASeed = kMostKept / 2;
constexpr std::size_t kFew = 256;  // made at once, at least
constexpr std::size_t kChunk = std::size_t{1}
                               << 20;  // by a thread: operands of timed cases have a hundred million

// Those there are, and behind them as many more as `count` wants. Each takes two of the stream's numbers.
NormalNumbers made(std::uint64_t seed, std::size_t count, const NormalNumbers& there) {
  auto numbers = std::make_shared<std::vector<double>>();
  numbers->reserve(count);
  if (there) *numbers = *there;
  const std::size_t first = numbers->size();
  numbers->resize(count);
  const std::size_t chunks = (count - first + kChunk - 1) / kChunk;
  parallel_for(chunks > 1 ? available_cores() : 1, chunks, [&](std::size_t chunk) {
    const std::size_t begin = first + chunk * kChunk;
    InputStream stream(seed);
    stream.skip(2 * begin);
    for (std::size_t i = begin; i < std::min(count, begin + kChunk); ++i) (*numbers)[i] = stream.normal();
  });
  return numbers;
}

class KeptNumbers {
 public:
  NormalNumbers find(std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    const auto at = of_seed_.find(seed);
    return at == of_seed_.end() ? nullptr : at->second;
  }
  void keep(std::uint64_t seed, const NormalNumbers& numbers) {
    const std::lock_guard lock(mutex_);
    NormalNumbers& kept = of_seed_[seed];
    const std::size_t before = kept ? kept->size() : 0;
    if (numbers->size() <= before) return;
    if (kept_ - before + numbers->size() > kMostKept) {
      of_seed_.clear();
      kept_ = 0;
      of_seed_[seed] = numbers;
    } else {
      kept = numbers;
      kept_ -= before;
    }
    kept_ += numbers->size();
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, NormalNumbers> of_seed_;
  std::size_t kept_ = 0;
};

}  // namespace

NormalNumbers normal_numbers(std::uint64_t seed, std::size_t count) {
  static KeptNumbers kept;
  if (count > kMostOfASeed) return made(seed, count, nullptr);
  const NormalNumbers there = kept.find(seed);
  if (there && there->size() >= count) return there;
  NormalNumbers numbers = made(seed, std::max(kFew, count), there);
  kept.keep(seed, numbers);
  return numbers;
}

}  // namespace assay
