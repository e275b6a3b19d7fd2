// How far a tensor moved: summed up block of rows by block of rows, then put into the usual figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/numeric/float_loops.h"
#include "core/system/report.h"

namespace assay {

struct ErrorSums {
  double error_squares = 0, before_squares = 0, after_squares = 0, products = 0, largest_error = 0;
  std::uint64_t elements = 0;
  std::uint64_t clamped = 0;      // values beyond the largest code
  std::uint64_t zero_blocks = 0;  // blocks of nothing but zeros

  // Sums in a fixed order, so that the result does not depend on how work was shared out.
  void add(std::span<const float> before, std::span<const float> after);
  void add(const DifferenceSums& sums, std::uint64_t of_elements);
  void add(const ErrorSums& other);

  double relative_frobenius() const;  // |after - before| / |before|
  double sqnr_db() const;             // 10 log10(|before|² / |after - before|²); infinite when equal
  double one_minus_cosine() const;
};

Json to_json(const ErrorSums& sums);
ErrorSums error_sums_from_json(const Json& json);  // throws Json::exception

}  // namespace assay
