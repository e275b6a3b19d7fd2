// What a check has to say about the user's data: collected and reported, never thrown.
//
// A Finding is made where the fact is known (a validator, a reconciler) and printed where the verdict is
// (a command). `code` is stable and documented in docs/findings.md, for scripts; the sentence is for people.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

enum class Severity {
  note,     // worth knowing; the verdict stays good
  warning,  // suspicious; the verdict stays good unless --strict
  error,    // the verdict is no
};

struct Finding {
  Severity severity = Severity::error;
  std::string code = {};     // "index.shard_missing": lower_snake_case, area first
  std::string message = {};  // one sentence, no file name in front, no full stop
  std::string file = {};     // path relative to what was examined; empty where the whole is meant
  std::string tensor = {};
  std::optional<std::uint64_t> offset = {};
  std::string remedy = {};  // what to do, in the imperative; may be empty
};

using Findings = std::vector<Finding>;

// Of a tensor, in a checkpoint whose files are the report's business.
inline Finding tensor_error(std::string code, std::string tensor, std::string message,
                            std::string remedy = {}) {
  Finding finding;
  finding.code = std::move(code);
  finding.message = std::move(message);
  finding.tensor = std::move(tensor);
  finding.remedy = std::move(remedy);
  return finding;
}

inline bool has_errors(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::error; });
}

}  // namespace assay
