// Sections of a report, each a few lines or a table, written once and rendered as plain text or Markdown.
#pragma once

#include <string>
#include <vector>

#include "core/system/report.h"
#include "core/system/table.h"

namespace assay {

class Sheet {
 public:
  using Align = Table::Align;
  explicit Sheet(bool markdown) : markdown_(markdown) {}

  void heading(const std::string& text);
  void line(const std::string& text);
  // Cells may begin with spaces, which show depth; Markdown keeps them as no-break spaces.
  void table(const std::vector<std::string>& header, const std::vector<Align>& align,
             const std::vector<std::vector<std::string>>& rows);
  std::string take() { return std::move(text_); }

 private:
  bool markdown_;
  std::string text_;
};

}  // namespace assay
