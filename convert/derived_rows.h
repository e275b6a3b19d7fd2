// Rows of a tensor that is put together from others (core/model/derived_tensor.h), in the type it is written in:
// copied, repacked or encoded, and held to what they were.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "convert/plan.h"
#include "core/model/error_sums.h"
#include "core/model/stored_reader.h"
#include "core/numeric/gguf_quantize.h"

namespace assay {

class DerivedRows {
 public:
  // All of them outlive this.
  DerivedRows(const ConversionPlan& plan, const ConvertOptions& options, const CheckpointReader& source)
      : plan_(plan), options_(options), source_(source), reader_(source, plan.stored) {}

  // Rows `first` …, as many as `stored` has room for by `count`. Throws Error::refused for NaN, Inf, values that
  // do not fit, and implausible ones.
  ErrorSums make(const DerivedOutput& output, std::uint64_t first, std::uint64_t count,
                 std::span<std::byte> stored) const;

 private:
  std::optional<std::uint32_t> copied_from(const DerivedOutput& output) const;
  void check_copied(const DerivedOutput& output, std::span<const std::byte> stored, std::size_t count) const;
  void check_values(const DerivedTensor& tensor, std::span<const float> values) const;

  const ConversionPlan& plan_;
  const ConvertOptions& options_;
  const CheckpointReader& source_;
  DerivedReader reader_;
};

// Rows that one piece of work takes: whole heads, whose rows change their order together.
std::uint64_t rows_a_piece(const DerivedTensor& tensor);

}  // namespace assay
