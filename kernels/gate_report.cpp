// The gate's verdict as JUnit XML, as a page, and as GitHub's annotations.
#include <fmt/format.h>

#include <algorithm>

#include "core/system/text.h"
#include "kernels/gate_baseline.h"

namespace assay {
namespace {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : escape_for_terminal(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// What a workflow command's message must not hold as it is.
std::string escape_annotation(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\n')
      out += "%0A";
    else if (c == '\r')
      out += "%0D";
    else
      out += c;
  }
  return out;
}

std::string junit_case(std::string_view suite, std::string_view name,
                       const std::vector<const Deviation*>& found) {
  std::string xml =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", escape_markup(suite), escape_markup(name));
  for (const Deviation* d : found) {
    if (d->tolerated)
      xml += fmt::format("      <skipped message=\"{}\"/>\n", escape_markup(d->message));
    else
      xml += fmt::format("      <failure type=\"{}\" message=\"{}\"/>\n", escape_markup(d->kind),
                         escape_markup(d->message));
  }
  return xml + "    </testcase>\n";
}

}  // namespace

std::string to_junit(const std::vector<CaseResult>& results, const std::vector<Deviation>& found) {
  std::string body;
  std::size_t tests = 0, failures = 0;
  std::vector<bool> told(found.size());
  for (const CaseResult& r : results) {
    if (r.status == CaseStatus::skipped || r.status == CaseStatus::unimplemented) continue;
    std::vector<const Deviation*> of_case;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].id != r.id || found[i].kernel != kernel_key(r)) continue;
      of_case.push_back(&found[i]);
      told[i] = true;
    }
    ++tests;
    failures +=
        std::any_of(of_case.begin(), of_case.end(), [](const Deviation* d) { return !d->tolerated; }) ? 1 : 0;
    body += junit_case(kernel_key(r), r.id, of_case);
  }
  // What belongs to no case: lost properties, vanished kernels, missed mutants.
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (told[i]) continue;
    ++tests;
    failures += found[i].tolerated ? 0 : 1;
    body += junit_case(found[i].kernel.empty() ? "gate" : found[i].kernel, found[i].kind, {&found[i]});
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"assay gate\" "
      "tests=\"{}\" "
      "failures=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      tests, failures, body);
}

std::string to_html(const Baseline& before, const Baseline& now, const std::vector<Deviation>& found,
                    const std::string& verdict) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>assay gate</title>\n<style>"
      "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 "
      "1em;color-scheme:light dark}"
      "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .75em;border-bottom:1px "
      "solid #8884}"
      "td.n{text-align:right;font-variant-numeric:tabular-nums}.bad{color:#c62828}</style></"
      "head><body>\n<h1>assay gate</h1>\n";
  html += fmt::format("<p>{}</p>\n", escape_markup(verdict));
  if (!found.empty()) {
    html += "<h2>Deviations</h2>\n<table><tr><th>kind</th><th>kernel</th><th>case</th><th>what</th></tr>\n";
    for (const Deviation& d : found)
      html += fmt::format("<tr><td{}>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                          d.tolerated ? "" : " class=\"bad\"", escape_markup(d.kind), escape_markup(d.kernel),
                          escape_markup(d.id), escape_markup(d.message));
    html += "</table>\n";
  }
  html +=
      "<h2>Kernels</h2>\n<table><tr><th>kernel</th><th>cases</th><th>error/budget "
      "then</th><th>now</th><th>kept</th></tr>\n";
  for (const auto& [key, record] : now.kernels) {
    const auto then = before.kernels.find(key);
    std::string kept;
    for (const auto& [property, value] : record.properties) {
      if (value == "yes") kept += (kept.empty() ? "" : ", ") + property;
    }
    html += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{:.3f}</td><td>{}</td></tr>\n",
        escape_markup(key), record.ratios.size(),
        then == before.kernels.end() ? "new" : fmt::format("{:.3f}", then->second.largest()),
        record.largest(), kept);
  }
  return html +
         fmt::format("</table>\n<p>{} planted faults caught.</p>\n</body></html>\n", now.mutants.size());
}

std::string to_annotation(const Deviation& d) {
  return fmt::format("::{} title=assay gate: {}::{}{}{}", d.tolerated ? "notice" : "error",
                     escape_annotation(d.kind), escape_annotation(d.kernel),
                     d.id.empty() ? ": " : " " + escape_annotation(d.id) + ": ",
                     escape_annotation(d.message));
}

}  // namespace assay
