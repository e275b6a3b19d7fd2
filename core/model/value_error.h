// How far the decoded values of two stored tensors are apart: as a whole, by tile and by row.
//
// Rounding into another format leaves about the same error everywhere; a wrong scale, a block of zeros or a
// row out of place does not, and is lost in the norm of a matrix of thousands of rows. So every tile and
// every row is held against the others of its matrix, and against what rounding to nearest could have done at
// most:
//
//   |a - b| ≤ rel·|b| + abs     floating-point codes: rel = 2^-(m+1), abs = scale · smallest code / 2
//                               integer codes of n bits: rel = 0, abs = scale / 2,
//                               scale = amax / (2^(n-1) - 1)
//
// A part is suspect when its error is beyond that bound, and a fault when it is also several times the median
// of its kind: methods that do not round to nearest (GPTQ, AWQ, clipped scales) are beyond the bound
// everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"
#include "core/system/progress.h"

namespace assay {

struct ValueError {
  double squares = 0;  // Σ b²
  double error = 0;    // Σ (a - b)²
  double product = 0;  // Σ a b
  double own = 0;      // Σ a²

  // Values that are equal, NaN on both sides among them, add no error.
  void add(std::span<const float> a, std::span<const float> b);
  void add(const ValueError& other);
  double relative() const;  // ‖a - b‖ / ‖b‖
  double cosine() const;
};

// At fault is what exceeds its like's median by that factor, where there are enough for a median.
inline constexpr double kTimesTheMedian = 3;
inline constexpr std::uint64_t kEnoughForAMedian = 4;

struct PartError {
  bool is_row = false;
  std::uint64_t row = 0, rows = 1, column = 0, columns = 1;  // rows over all slices
  ValueError error;
  double usual = 0;  // the median of its kind in this matrix
};
// "rows 128-255, columns 256-383 are off by 1 of their norm (the median tile: 0.026), as 2 × what they should
// be".
std::string describe(const PartError& part);

struct ValueComparison {
  struct Kind {
    std::uint64_t parts = 0;  // that hold anything
    double median = 0;        // of their relative errors
  };
  ValueError whole;
  Kind tiles, rows;
  static constexpr std::size_t kMostSuspects = 256;
  std::vector<PartError> suspects;  // the worst of them, worst first

  // Suspects beyond several times the median; where there are too few parts for one, `usual` is the error of
  // other tensors that went the same way.
  std::vector<PartError> faults(std::optional<double> usual) const;
};

// Both have one shape. Some rows at a time.
ValueComparison compare_by_parts(const CheckpointReader& a, const LogicalTensor& in_a,
                                 const CheckpointReader& b, const LogicalTensor& in_b, Progress& progress);

// Floats, in whatever form; integers that stand for nothing else are no weights.
bool is_decodable(const LogicalTensor& tensor);

}  // namespace assay
