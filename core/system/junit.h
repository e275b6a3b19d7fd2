// JUnit's XML, which CI systems list tests from: suites, cases, and what became of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A test that said no (failure) is told from one that could not be run to its end, or proved nothing (error).
enum class JunitOutcome : std::uint8_t { failure, error, skipped };

struct JunitCase {
  struct Said {
    JunitOutcome outcome;
    std::string type, message;
  };
  std::string suite, name;
  std::vector<Said> said;  // empty: it passed
};
std::string to_junit(std::string_view title, const std::vector<JunitCase>& cases);

}  // namespace assay
