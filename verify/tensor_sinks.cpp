#include "verify/tensor_sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/stored_names.h"
#include "core/system/error.h"

namespace assay {

TensorSink::TensorSink(std::span<const TensorRange> tensors, TensorExamination examination)
    : tensors_(tensors), examination_(examination) {}

void TensorSink::consume(std::span<const std::byte> bytes) {
  const std::uint64_t piece_end = position_ + bytes.size();
  while (current_ < tensors_.size()) {
    const TensorRange& tensor = tensors_[current_];
    if (tensor.begin > piece_end || (tensor.begin == piece_end && tensor.end > tensor.begin)) break;
    if (!open_) begin_tensor();
    const std::uint64_t from = std::max(position_, tensor.begin);
    const std::uint64_t to = std::min(piece_end, tensor.end);
    if (to > from) {
      const auto part = bytes.subspan(from - position_, to - from);
      if (statistics_) statistics_->update(part);
      if (digest_) digest_->update(part);
    }
    if (tensor.end > piece_end) break;  // the rest comes with the next piece
    end_tensor();
  }
  position_ = piece_end;
}

void TensorSink::finish() {
  // Zero-size tensors at the very end of the file.
  while (current_ < tensors_.size() && tensors_[current_].begin == tensors_[current_].end) {
    if (!open_) begin_tensor();
    end_tensor();
  }
}

void TensorSink::begin_tensor() {
  open_ = true;
  if (examination_.numbers) statistics_.emplace(tensors_[current_].type);
  if (examination_.digests)
    digest_.emplace(DigestKind::sha256, tensors_[current_].end - tensors_[current_].begin);
}

void TensorSink::end_tensor() {
  const TensorRange& tensor = tensors_[current_];
  Json json = {{"name", tensor.name}, {"type", name(tensor.type)}, {"shape", tensor.shape}};
  if (digest_) json["sha256"] = digest_->finish().hex();
  if (statistics_) {
    const Numbers n = statistics_->numbers();
    json["count"] = n.count;
    json["nan"] = n.nan;
    json["inf"] = n.inf;
    json["zeros"] = n.zero;
    json["subnormals"] = n.subnormal;
    const bool any_finite = n.finite() > 0;
    json["min"] = any_finite ? Json(n.min) : Json();
    json["max"] = any_finite ? Json(n.max) : Json();
    json["amax"] = any_finite ? Json(n.amax) : Json();
  }
  results_.push_back(std::move(json));
  statistics_.reset();
  digest_.reset();
  open_ = false;
  ++current_;
}

Findings judge_numbers(const Json& tensor, bool allow_nonfinite) {
  Findings findings;
  const auto add = [&](Severity severity, const char* code, std::string message) {
    findings.push_back({.severity = severity,
                        .code = code,
                        .message = std::move(message),
                        .tensor = tensor.at("name").get<std::string>()});
  };
  const auto number = [&](const char* key) { return tensor.value(key, std::uint64_t{0}); };
  const std::uint64_t count = number("count"), nan = number("nan"), inf = number("inf");
  if (nan + inf > 0) {
    add(allow_nonfinite ? Severity::warning : Severity::error, "numbers.nonfinite",
        fmt::format("holds {} NaN and {} Inf among {} values", nan, inf, count));
  }
  const auto stored = parse_stored_name(tensor.at("name").get<std::string>());
  const bool zero_points =
      stored && stored->part == StoredPart::zero_point;  // of symmetric weights they are 0
  if (count > 1 && number("zeros") == count && !zero_points) {
    add(Severity::warning, "numbers.all_zero", fmt::format("all {} values are zero", count));
  }
  return findings;
}

}  // namespace assay
