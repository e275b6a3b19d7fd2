#include "paramcount/sheet.h"

#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

std::string markdown_cell(const std::string& cell) {
  std::string out;
  bool leading = true;
  for (const char c : escape_for_terminal(cell)) {
    leading = leading && c == ' ';
    if (leading)
      out += "&nbsp;";
    else if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

}  // namespace

void Sheet::heading(const std::string& text) {
  if (!text_.empty()) text_ += '\n';
  text_ += markdown_ ? "## " + markdown_cell(text) + "\n\n" : escape_for_terminal(text) + "\n";
}

void Sheet::line(const std::string& text) {
  text_ += markdown_ ? markdown_cell(text) + "  \n" : escape_for_terminal(text) + "\n";
}

void Sheet::table(const std::vector<std::string>& header, const std::vector<Align>& align,
                  const std::vector<std::vector<std::string>>& rows) {
  if (!markdown_) {
    Table table(header, align);
    for (std::vector<std::string> row : rows) {
      for (std::string& cell : row) cell = escape_for_terminal(cell);
      table.add(std::move(row));
    }
    text_ += table.render();
    return;
  }
  const auto write = [&](const std::vector<std::string>& cells) {
    text_ += '|';
    for (const std::string& cell : cells) text_ += ' ' + markdown_cell(cell) + " |";
    text_ += '\n';
  };
  write(header);
  text_ += '|';
  for (const Align a : align) text_ += a == Align::right ? "---:|" : "---|";
  text_ += '\n';
  for (const auto& row : rows) write(row);
  text_ += '\n';
}

}  // namespace assay
