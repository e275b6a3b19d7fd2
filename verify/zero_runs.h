// Listens to a file while it is hashed for the longest run of zero bytes: what a download leaves where a
// piece was never written.
#pragma once

#include <cstdint>

#include "core/formats/hash/hasher.h"

namespace assay {

struct ZeroRun {
  std::uint64_t begin = 0, bytes = 0;
};

bool all_zero(std::span<const std::byte> bytes);

// Whole pages of kPage bytes only: that is how storage loses data, and it costs next to nothing to look for.
class ZeroRunSink : public ByteSink {
 public:
  static constexpr std::uint64_t kPage = 4096;

  void consume(std::span<const std::byte> bytes) override;
  ZeroRun longest() const { return longest_; }

 private:
  void end_page();

  ZeroRun longest_, current_;
  std::uint64_t position_ = 0;
  bool page_is_zero_ = true;  // of the page that position_ lies in, up to position_
};

}  // namespace assay
