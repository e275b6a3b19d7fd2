// The fields of a request's JSON, each read once, with its type and its bounds; what nobody has read is refused, for an
// answer without it would be another one than was asked for.
//
//   RequestFields fields(document);
//   const double temperature = fields.number("temperature", 0, 2).value_or(1);
//   fields.refuse_others();
//
// Errors are Error::input, with the field's name in place of a file's: "temperature: has to be …". null is as if the
// field were not there, as in OpenAI's API.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay {

Error field_error(std::string_view field, std::string_view what);

class RequestFields {
 public:
  // Throws Error::input where the document is no object. `prefix`: of the fields' names, "response_format."
  explicit RequestFields(const ParsedJson& document, std::string prefix = "");

  const ParsedJson* find(std::string_view name);  // nullptr: not there, or null
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::uint64_t> whole(std::string_view name, std::uint64_t least, std::uint64_t most);
  std::optional<bool> flag(std::string_view name);
  std::optional<std::string> text(std::string_view name);

  // Whatever they hold, the answer is the same.
  void pass_over(std::initializer_list<std::string_view> names);
  // Only where they say what is done anyway.
  void refuse_but(std::string_view name, const ParsedJson& harmless, std::string_view why);
  void refuse_others() const;

  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const ParsedJson& document_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace assay
