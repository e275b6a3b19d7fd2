#include "convert/estimate.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>

#include "core/system/file.h"

namespace assay {
namespace {

constexpr std::uint64_t kPiece = 4 << 20, kMost = 256 << 20;
constexpr std::chrono::milliseconds kLongest{100};

}  // namespace

std::optional<TimeEstimate> estimate_time(const ConversionPlan& plan) {
  const auto& files = plan.checkpoint.files;
  const auto largest = std::max_element(files.begin(), files.end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (largest == files.end()) return std::nullopt;
  const File file = File::open(largest->path);
  const std::uint64_t most = std::min(kMost, file.size() / 2);
  std::uint64_t at = file.size() / 2;
  // Only a hint: what is cached and clean is let go of, so that the disk is what is measured.
  static_cast<void>(::posix_fadvise(file.descriptor(), static_cast<off_t>(at), static_cast<off_t>(most),
                                    POSIX_FADV_DONTNEED));
  std::vector<std::byte> buffer(kPiece);
  TimeEstimate estimate;
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> taken{0};
  while (estimate.sample < most && taken < kLongest) {
    const std::size_t n = file.read_at(at, std::span(buffer).first(std::min(kPiece, most - estimate.sample)));
    if (n == 0) break;
    at += n;
    estimate.sample += n;
    taken = std::chrono::steady_clock::now() - start;
  }
  if (estimate.sample == 0 || taken.count() <= 0) return std::nullopt;
  estimate.bytes_per_second = static_cast<double>(estimate.sample) / taken.count();
  estimate.seconds = static_cast<double>(plan.read_bytes + plan.file_bytes) / estimate.bytes_per_second;
  return estimate;
}

}  // namespace assay
