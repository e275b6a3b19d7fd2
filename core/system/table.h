// Tables for people, in a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Columns padded to the widest cell; numbers right-aligned. Two spaces between columns, no rules.
class Table {
 public:
  enum class Align { left, right };
  Table(std::vector<std::string> header, std::vector<Align> align)
      : align_(std::move(align)), rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string render() const;  // lines end with '\n'

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// The same of a million rows: each is made twice, once to be measured and once to be written, and not kept.
class TableLines {
 public:
  explicit TableLines(std::vector<Table::Align> align) : align_(std::move(align)) {}
  void measure(std::span<const std::string> row);
  std::string line(std::span<const std::string> row) const;  // ends with '\n'

 private:
  std::vector<Table::Align> align_;
  std::vector<std::size_t> widths_;
};

// Columns a terminal needs for `utf8` (combining marks ignored, wide characters counted twice).
std::size_t display_width(std::string_view utf8);

}  // namespace assay
