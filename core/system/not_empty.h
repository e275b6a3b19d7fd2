// `--manifest ""` is a script's variable that was not set: it must not mean "no manifest".
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace assay {

inline CLI::Validator not_empty() {
  return CLI::Validator([](std::string& value) { return value.empty() ? "is given, and empty" : ""; }, "",
                        "not empty");
}

}  // namespace assay
