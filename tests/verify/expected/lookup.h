// Reading an Expectation in tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "verify/expected/expected.h"

namespace assay::test {

inline std::vector<std::string> names(const Expectation& e) {
  std::vector<std::string> result;
  for (const ExpectedFile& file : e.files) result.push_back(file.name);
  return result;
}

inline const ExpectedFile* find(const Expectation& e, std::string_view name) {
  const auto it = std::find_if(e.files.begin(), e.files.end(), [&](const auto& f) { return f.name == name; });
  return it == e.files.end() ? nullptr : &*it;
}

inline std::string digest(const Expectation& e, std::string_view name) {
  const ExpectedFile* file = find(e, name);
  return file == nullptr ? "not listed" : file->digest ? file->digest->hex() : "no digest";
}

inline const Finding* finding(const Findings& findings, std::string_view code, std::string_view file = {}) {
  const auto it = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) {
    return f.code == code && (file.empty() || f.file == file);
  });
  return it == findings.end() ? nullptr : &*it;
}
inline const Finding* finding(const Expectation& e, std::string_view code, std::string_view file = {}) {
  return finding(e.findings, code, file);
}

}  // namespace assay::test
