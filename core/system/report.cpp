#include "core/system/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/output_paths.h"
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
  write_whole(json_target_, text);
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

}  // namespace assay
