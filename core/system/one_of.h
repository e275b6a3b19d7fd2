// A value of the command line that has a name: CLI11's CheckedTransformer takes numbers as well, and shows them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace assay {

// option.transform(one_of(names)): of an enumeration.
template <class T>
CLI::Validator one_of(std::map<std::string, T> names) {
  return CLI::Validator(
      [names = std::move(names)](std::string& text) {
        const auto found = names.find(text);
        if (found != names.end()) {
          text = std::to_string(static_cast<std::underlying_type_t<T>>(found->second));
          return std::string();
        }
        std::vector<std::string> all;
        for (const auto& [name, value] : names) all.push_back(name);
        return fmt::format("\"{}\" is none of {}", text, fmt::join(all, ", "));
      },
      "", "one of");
}

}  // namespace assay
