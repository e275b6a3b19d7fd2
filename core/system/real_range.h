// Numbers of the command line: CLI11's Range takes "nan", which is below nothing and above nothing.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <string>

namespace assay {

inline CLI::Validator real_range(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return std::string();
        return fmt::format("{} is no number from {} to {}", text, low, high);
      },
      fmt::format("FLOAT in [{} - {}]", low, high), "real range");
}

inline CLI::Validator positive_real() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool taken = CLI::detail::lexical_cast(text, value) && value > 0 &&
                           value <= std::numeric_limits<double>::max();
        return taken ? std::string() : text + " is no number above 0";
      },
      "POSITIVE", "positive");
}

}  // namespace assay
