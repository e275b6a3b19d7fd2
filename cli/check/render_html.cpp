// The page of an examination: the verdict, a card a stage with what it found.
#include <fmt/format.h>

#include "cli/check/render.h"
#include "core/system/html_page.h"

namespace assay {
namespace {

constexpr std::string_view kStyle = R"css(
.stage { margin: 12px 0; }
.stage h2 { margin: 0; display: flex; gap: 10px; align-items: baseline; }
.stage h2 small { color: var(--soft); font-weight: 400; font-size: .85rem; }
.mark { font-size: .78rem; font-weight: 700; letter-spacing: .04em; }
.stage ul { margin: 8px 0 0; padding-left: 20px; }
.stage li { overflow-wrap: anywhere; margin: 3px 0; }
)css";

std::string_view mark_class(StageStatus status) {
  switch (status) {
    case StageStatus::passed: return "good";
    case StageStatus::failed: return "bad";
    default: return "soft";
  }
}

std::string card(const Stage& stage) {
  std::string found;
  for (const Finding& finding : stage.findings) {
    if (finding.severity != Severity::note)
      found += fmt::format("<li>{}</li>\n", html::escape(to_line(finding)));
  }
  return fmt::format(
      "<section class=\"card stage\"><h2><span class=\"mark {}\">{}</span>{}<small>{:.2f} s</small></h2>\n"
      "<p>{}</p>\n{}</section>\n",
      mark_class(stage.status), name(stage.status), html::escape(stage.name), stage.seconds,
      html::escape(stage.summary), found.empty() ? "" : "<ul>\n" + found + "</ul>\n");
}

}  // namespace

std::string render_html(const CheckReport& report, bool strict) {
  std::string page = html::head({.title = "assay check", .style = kStyle});
  page += fmt::format("<main>\n<h1>{}</h1>\n<p class=\"verdict {}\">{}</p>\n", html::escape(report.path),
                      report.good(strict) ? "good" : "bad", html::escape(verdict_line(report, strict)));
  for (const Stage& stage : report.stages) page += card(stage);
  page += "</main>\n";
  page += html::kEnd;
  return page;
}

}  // namespace assay
