// Rows put together from parts: cut between tokens and between heads in any way, in any order, a head that came twice the
// same twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/handoff/handoff_part.h"

namespace assay {

class RowAssembly {
 public:
  // Rows first … rows - 1 are wanted; those before are nobody's business and hold NaN.
  RowAssembly(std::size_t rows, std::size_t row_numbers, std::uint64_t heads, std::size_t first = 0)
      : RowAssembly(rows, row_numbers, HeadRange{0, heads, heads}, first) {}
  // Of some of the heads that parts may be of: others' are passed over.
  RowAssembly(std::size_t rows, std::size_t row_numbers, const HeadRange& own, std::size_t first = 0);

  // `at`: the row of the part's first. Throws Error::input for rows, heads or columns that are none of these, and where a
  // head that is here already came otherwise.
  void take(const HandoffPart& part, std::uint64_t at);
  // "head 1 of token 17"; none: all is here.
  std::optional<std::string> missing() const;

  std::vector<double>& numbers() { return numbers_; }  // [rows, row_numbers]
  std::size_t row_numbers() const { return row_numbers_; }
  std::uint64_t heads() const { return own_.count; }

 private:
  std::size_t rows_, row_numbers_, first_;
  HeadRange own_;
  std::vector<double> numbers_;
  std::vector<bool> here_;  // [rows, heads]
};

}  // namespace assay
