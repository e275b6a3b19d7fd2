// Listeners on the bytes of a file while it is hashed: per tensor number statistics and digests.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/formats/stream_digest.h"
#include "core/numeric/statistics.h"
#include "verify/structure.h"
#include "verify/tensor_report.h"

namespace assay {

struct TensorExamination {
  bool numbers = false;  // NaN, Inf, zeros, subnormals, min, max, amax
  bool digests = false;  // sha256 of each tensor's stored bytes
};

// Cuts the stream of a weight file at its tensors' borders and examines each; one tensor's state at a time.
class TensorSink : public ByteSink {
 public:
  TensorSink(std::span<const TensorRange> tensors, TensorExamination examination);  // which outlive it

  void consume(std::span<const std::byte> bytes) override;
  void finish() override;

  std::vector<TensorReport> take_results() { return std::move(results_); }

 private:
  void begin_tensor();
  void end_tensor();

  std::span<const TensorRange> tensors_;
  TensorExamination examination_;
  std::size_t current_ = 0;
  std::uint64_t position_ = 0;
  bool open_ = false;
  std::optional<TensorStatistics> statistics_;
  std::optional<StreamDigest> digest_;
  std::vector<TensorReport> results_;
};

// Hands the same bytes to several sinks.
class FanOut : public ByteSink {
 public:
  explicit FanOut(std::vector<ByteSink*> sinks) : sinks_(std::move(sinks)) {}
  void consume(std::span<const std::byte> bytes) override {
    for (ByteSink* sink : sinks_) sink->consume(bytes);
  }
  void finish() override {
    for (ByteSink* sink : sinks_) sink->finish();
  }
  std::span<std::byte> room() override {
    return sinks_.back()->room();
  }  // the last may move what it has seen

 private:
  std::vector<ByteSink*> sinks_;
};

}  // namespace assay
