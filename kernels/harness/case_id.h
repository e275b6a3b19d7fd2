// The name of a case is the case: its id in reports, what reproduces it, and the key of its row in a CSV.
//
//   linear:BF16:m=17:k=4096:n=576:in=heavy:seed=1
//
// First the operation, then what it is computed on (an element type or a stored form), then settings in an
// order of the operation's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/harness/inputs.h"

namespace assay {

class CaseId {
 public:
  CaseId(std::string op, std::string form) : op_(std::move(op)), form_(std::move(form)) {}
  // Throws Error::usage for text that is no case's name.
  static CaseId parse(std::string_view text);

  CaseId& with(std::string_view key, std::uint64_t value);
  CaseId& with(std::string_view key, std::string_view value);
  CaseId& with(InputKind kind, std::uint64_t seed = 1) { return with("in", name(kind)).with("seed", seed); }

  const std::string& op() const { return op_; }
  const std::string& form() const { return form_; }
  std::string text() const;

  // Settings; the default where a key is missing. Throws Error::usage on a value that is none.
  std::uint64_t number(std::string_view key, std::uint64_t missing = 0) const;
  std::string word(std::string_view key, std::string_view missing = "") const;
  InputKind input() const;  // "in"; zero_mean where missing
  std::uint64_t seed() const { return number("seed", 1); }

 private:
  std::string op_, form_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

}  // namespace assay
