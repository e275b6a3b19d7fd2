// The gate's verdict as JUnit XML, as a page, and as GitHub's annotations.
#include <fmt/format.h>

#include <algorithm>

#include "core/system/html_page.h"
#include "core/system/junit.h"
#include "kernels/gate/baseline.h"

namespace assay {
namespace {

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

// JUnit tells a test that said no (failure) from one that could not be run to its end (error).
bool is_error(const Deviation& d) {
  return d.kind == "error";
}

JunitCase junit_case(const std::string& suite, const std::string& name,
                     const std::vector<const Deviation*>& found) {
  JunitCase one = {suite, name, {}};
  for (const Deviation* d : found)
    one.said.push_back({d->tolerated   ? JunitOutcome::skipped
                        : is_error(*d) ? JunitOutcome::error
                                       : JunitOutcome::failure,
                        d->kind, d->message});
  return one;
}

}  // namespace

std::string to_junit(const std::vector<CaseResult>& results, const SuiteResults& suites,
                     const std::vector<Deviation>& found) {
  std::vector<JunitCase> cases;
  std::vector<bool> told(found.size());
  const auto add = [&](const std::string& suite, const std::string& id) {
    std::vector<const Deviation*> of_case;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].id != id || found[i].kernel != suite) continue;
      of_case.push_back(&found[i]);
      told[i] = true;
    }
    cases.push_back(junit_case(suite, id, of_case));
  };
  for (const CaseResult& r : results) {
    if (r.status == CaseStatus::skipped || r.status == CaseStatus::unimplemented) continue;
    add(kernel_key(r), r.id);
  }
  for (const auto& [suite, figures] : suites) {
    for (const GateFigure& figure : figures) add(suite, figure.name);
  }
  // What belongs to no case: lost properties, vanished kernels, missed mutants.
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (told[i]) continue;
    cases.push_back(
        junit_case(found[i].kernel.empty() ? "gate" : found[i].kernel, found[i].kind, {&found[i]}));
  }
  return to_junit("assay gate", cases);
}

std::string to_html(const Baseline& before, const Baseline& now, const std::vector<Deviation>& found,
                    const std::string& verdict) {
  std::string page = html::head({.title = "assay gate"}) + "<main>\n<h1>assay gate</h1>\n";
  page += fmt::format("<p>{}</p>\n", html::escape(verdict));
  if (!found.empty()) {
    page += "<h2>Deviations</h2>\n<table><tr><th>kind</th><th>kernel</th><th>case</th><th>what</th></tr>\n";
    for (const Deviation& d : found)
      page += fmt::format("<tr><td{}>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                          d.tolerated ? "" : " class=\"bad\"", html::escape(d.kind), html::escape(d.kernel),
                          html::escape(d.id), html::escape(d.message));
    page += "</table>\n";
  }
  page +=
      "<h2>Kernels</h2>\n<table><tr><th>kernel</th><th>cases</th><th>error/budget "
      "then</th><th>now</th><th>roundoff of sums</th><th>kept</th></tr>\n";
  for (const auto& [key, record] : now.kernels) {
    const auto then = before.kernels.find(key);
    std::string kept;
    for (const auto& [property, value] : record.properties) {
      if (value == "yes") kept += (kept.empty() ? "" : ", ") + property;
    }
    page += fmt::format(
        "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{:.3f}</td><td class=\"number\">{:.2g}</td><td>{}</td></tr>\n",
        html::escape(key), record.ratios.size(),
        then == before.kernels.end() ? "new" : fmt::format("{:.3f}", then->second.largest()),
        record.largest(), record.accumulator_roundoff.value_or(0), kept);
  }
  return page + fmt::format("</table>\n<p>{} planted faults caught.</p>\n</main>\n{}", now.mutants.size(),
                            html::kEnd);
}

std::string to_annotation(const Deviation& d) {
  return fmt::format("::{} title=assay gate: {}::{}{}{}", d.tolerated ? "notice" : "error",
                     escape_annotation(d.kind), escape_annotation(d.kernel),
                     d.id.empty() ? ": " : " " + escape_annotation(d.id) + ": ",
                     escape_annotation(d.message));
}

}  // namespace assay
