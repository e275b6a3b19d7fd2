// The gate's verdict as JUnit XML, as a page, and as GitHub's annotations.
#include <fmt/format.h>

#include <algorithm>

#include "core/system/html_page.h"
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

struct JunitCounts {
  std::size_t tests = 0, failures = 0, errors = 0;
  void add(const std::vector<const Deviation*>& of_case) {
    ++tests;
    const auto any = [&](bool error) {
      return std::any_of(of_case.begin(), of_case.end(),
                         [&](const Deviation* d) { return !d->tolerated && is_error(*d) == error; });
    };
    if (any(true))
      ++errors;
    else if (any(false))
      ++failures;
  }
};

std::string junit_case(std::string_view suite, std::string_view name,
                       const std::vector<const Deviation*>& found) {
  std::string xml =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", html::escape(suite), html::escape(name));
  for (const Deviation* d : found) {
    if (d->tolerated)
      xml += fmt::format("      <skipped message=\"{}\"/>\n", html::escape(d->message));
    else
      xml += fmt::format("      <{} type=\"{}\" message=\"{}\"/>\n", is_error(*d) ? "error" : "failure",
                         html::escape(d->kind), html::escape(d->message));
  }
  return xml + "    </testcase>\n";
}

}  // namespace

std::string to_junit(const std::vector<CaseResult>& results, const SuiteResults& suites,
                     const std::vector<Deviation>& found) {
  std::string body;
  JunitCounts counts;
  std::vector<bool> told(found.size());
  const auto add = [&](const std::string& suite, const std::string& id) {
    std::vector<const Deviation*> of_case;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].id != id || found[i].kernel != suite) continue;
      of_case.push_back(&found[i]);
      told[i] = true;
    }
    counts.add(of_case);
    body += junit_case(suite, id, of_case);
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
    counts.add({&found[i]});
    body += junit_case(found[i].kernel.empty() ? "gate" : found[i].kernel, found[i].kind, {&found[i]});
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"assay gate\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      counts.tests, counts.failures, counts.errors, body);
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
