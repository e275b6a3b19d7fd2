#include "verify/tensor_sinks.h"

#include <algorithm>

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
  TensorReport found{
      .name = tensor.name, .type = tensor.type, .shape = tensor.shape, .sha256 = {}, .numbers = {}};
  if (digest_) found.sha256 = digest_->finish();
  if (statistics_) found.numbers = statistics_->numbers();
  results_.push_back(std::move(found));
  statistics_.reset();
  digest_.reset();
  open_ = false;
  ++current_;
}

}  // namespace assay
