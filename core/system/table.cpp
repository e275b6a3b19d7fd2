#include "core/system/table.h"

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

std::size_t display_width(std::string_view utf8) {
  if (std::all_of(utf8.begin(), utf8.end(), [](char c) { return c >= 0; })) return utf8.size();
  std::size_t width = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if ((byte & 0xC0) == 0x80) continue;  // a continuation byte
    if (byte == 0xCC ||
        (byte == 0xCD && i + 1 < utf8.size() && static_cast<unsigned char>(utf8[i + 1]) < 0xB0)) {
      continue;  // U+0300..U+036F, combining marks
    }
    width += (byte >= 0xE4 && byte <= 0xED) || byte >= 0xF0 ? 2 : 1;  // CJK, emoji: near enough for a table
  }
  return width;
}

std::string Table::render() const {
  TableLines lines(align_);
  for (const auto& row : rows_) lines.measure(row);
  std::string text;
  for (const auto& row : rows_) text += lines.line(row);
  return text;
}

}  // namespace assay
