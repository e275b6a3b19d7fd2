// A table whose rows are made twice, once to be measured and once to be written, and never kept: Table for a
// million rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/system/report.h"

namespace assay {

class TableLines {
 public:
  explicit TableLines(std::vector<Table::Align> align) : align_(std::move(align)) {}
  void measure(std::span<const std::string> row);
  std::string line(std::span<const std::string> row) const;  // ends with '\n'

 private:
  std::vector<Table::Align> align_;
  std::vector<std::size_t> widths_;
};

}  // namespace assay
