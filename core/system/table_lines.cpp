#include "core/system/table_lines.h"

#include <algorithm>

namespace assay {

void TableLines::measure(std::span<const std::string> row) {
  widths_.resize(std::max(widths_.size(), row.size()));
  for (std::size_t c = 0; c < row.size(); ++c) widths_[c] = std::max(widths_[c], display_width(row[c]));
}

std::string TableLines::line(std::span<const std::string> row) const {
  std::string line;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const std::string padding(widths_[c] - display_width(row[c]), ' ');
    const bool right = c < align_.size() && align_[c] == Table::Align::right;
    line += right ? padding + row[c] : row[c] + padding;
    if (c + 1 < row.size()) line += "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace assay
