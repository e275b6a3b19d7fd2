// What --numbers and --tensor-digests find of one tensor, and the verdict on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/digest.h"
#include "core/numeric/element_type.h"
#include "core/numeric/statistics.h"
#include "core/system/report.h"

namespace assay {

struct TensorReport {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::uint64_t> shape;
  std::optional<Digest> sha256;    // of the stored bytes; with --tensor-digests
  std::optional<Numbers> numbers;  // with --numbers

  bool has_finite() const { return numbers && numbers->finite() > 0; }  // min, max and amax are of these
};
// Of a file; none: neither was asked for, or it holds no tensors.
using TensorReports = std::optional<std::vector<TensorReport>>;

// [{"name", "type", "shape", "sha256", "count", "nan", "inf", "zeros", "subnormals", "min", "max", "amax"}, …], as
// reports and state files have it; min, max and amax are null where no value is finite.
Json to_json(const std::vector<TensorReport>& tensors);
// The same backwards. Throws Error::input that names `source`.
std::vector<TensorReport> read_tensor_reports(std::string_view json, const std::filesystem::path& source);

// NaN or Inf, all zeros. File names are left to the caller.
Findings judge_numbers(const TensorReport& tensor, bool allow_nonfinite);

}  // namespace assay
