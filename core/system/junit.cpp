#include "core/system/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/html_page.h"

namespace assay {
namespace {

bool any(const JunitCase& one, JunitOutcome outcome) {
  return std::any_of(one.said.begin(), one.said.end(),
                     [&](const JunitCase::Said& said) { return said.outcome == outcome; });
}

std::string to_xml(const JunitCase::Said& said) {
  if (said.outcome == JunitOutcome::skipped)
    return fmt::format("      <skipped message=\"{}\"/>\n", html::escape(said.message));
  return fmt::format("      <{} type=\"{}\" message=\"{}\"/>\n",
                     said.outcome == JunitOutcome::error ? "error" : "failure", html::escape(said.type),
                     html::escape(said.message));
}

}  // namespace

std::string to_junit(std::string_view title, const std::vector<JunitCase>& cases) {
  std::string body;
  std::size_t failures = 0, errors = 0;
  for (const JunitCase& one : cases) {
    if (any(one, JunitOutcome::error))
      ++errors;
    else if (any(one, JunitOutcome::failure))
      ++failures;
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", html::escape(one.suite),
                        html::escape(one.name));
    for (const JunitCase::Said& said : one.said) body += to_xml(said);
    body += "    </testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      html::escape(title), cases.size(), failures, errors, body);
}

}  // namespace assay
