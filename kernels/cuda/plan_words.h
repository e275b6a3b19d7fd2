// What plans say of themselves: which variant, and why. While a model computes nobody reads it, and making so many words
// takes as long as a launch.
//
//   plan.why = said("{} rows of {}", rows, columns);
//   const PlansWithoutWords none;    // of this thread, until its end, `said` says nothing
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace assay::cuda {

class PlansWithoutWords {
 public:
  PlansWithoutWords() : before_(std::exchange(silent, true)) {}
  PlansWithoutWords(const PlansWithoutWords&) = delete;
  PlansWithoutWords& operator=(const PlansWithoutWords&) = delete;
  ~PlansWithoutWords() { silent = before_; }
  static thread_local bool silent;

 private:
  const bool before_;
};

template <class... Arguments>
std::string said(fmt::format_string<const Arguments&...> text, const Arguments&... arguments) {
  return PlansWithoutWords::silent ? std::string() : fmt::format(text, arguments...);
}

}  // namespace assay::cuda
