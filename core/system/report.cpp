#include "core/system/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/message.h"
#include "core/system/table_lines.h"
#include "core/system/text.h"

namespace assay {
namespace {

const char* escape_code(Style style) {
  switch (style) {
    case Style::bold: return "\x1b[1m";
    case Style::dim: return "\x1b[2m";
    case Style::red: return "\x1b[31m";
    case Style::green: return "\x1b[32m";
    case Style::yellow: return "\x1b[33m";
    case Style::cyan: return "\x1b[36m";
    case Style::plain: break;
  }
  return "";
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: break;
  }
  return "error";
}

}  // namespace

bool colours_on(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return ::isatty(::fileno(stream)) != 0;
}

std::string styled(std::string_view text, Style style, bool on) {
  if (!on || style == Style::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_code(style), text);
}

void Output::line(std::string_view text) const {
  if (!text_wanted()) return;
  write_output(text);
  write_output("\n");
}

void Output::json(const Json& document) const {
  if (!json_wanted()) return;
  const std::string text = dump_json(document) + "\n";
  if (json_target_ == "-") {
    write_output(text);
    return;
  }
  AtomicFile file(json_target_);
  file.write(text);
  file.commit();
}

std::string dump_json(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Finding& finding) {
  Json json = {
      {"severity", severity_name(finding.severity)}, {"code", finding.code}, {"message", finding.message}};
  if (!finding.file.empty()) json["file"] = finding.file;
  if (!finding.tensor.empty()) json["tensor"] = finding.tensor;
  if (finding.offset) json["offset"] = *finding.offset;
  if (!finding.remedy.empty()) json["remedy"] = finding.remedy;
  return json;
}

Json to_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(to_json(finding));
  return list;
}

std::string to_line(const Finding& finding) {
  std::string text = fmt::format("{}: ", severity_name(finding.severity));
  if (!finding.file.empty()) text += escape_for_terminal(finding.file) + ": ";
  if (!finding.tensor.empty()) text += "tensor " + escape_for_terminal(finding.tensor) + ": ";
  if (finding.offset) text += fmt::format("byte {}: ", *finding.offset);
  text += escape_for_terminal(finding.message);
  if (!finding.remedy.empty()) text += "; " + escape_for_terminal(finding.remedy);
  return text;
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
