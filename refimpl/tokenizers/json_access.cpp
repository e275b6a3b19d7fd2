#include "refimpl/tokenizers/json_access.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

namespace fs = std::filesystem;

bool bool_member(const ParsedJson& object, std::string_view key, bool otherwise, const fs::path& source) {
  const ParsedJson& value = member(object, key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) {
    throw Error::input(fmt::format("{} is {}, not true or false", key, value.type_name())).in(source);
  }
  return value.get<bool>();
}

std::string string_member(const ParsedJson& object, std::string_view key, std::string_view otherwise,
                          const fs::path& source) {
  const ParsedJson& value = member(object, key);
  return value.is_null() ? std::string(otherwise) : json_string(value, key, source);
}

std::uint64_t u64_member(const ParsedJson& object, std::string_view key, std::uint64_t otherwise,
                         const fs::path& source) {
  const ParsedJson& value = member(object, key);
  return value.is_null() ? otherwise : json_u64(value, key, source);
}

const ParsedJson& list_member(const ParsedJson& object, std::string_view key, const fs::path& source) {
  const ParsedJson& value = member(object, key);
  if (!value.is_array()) {
    throw Error::input(fmt::format("{} is {}, not a list", key, value.type_name())).in(source);
  }
  return value;
}

std::string component_type(const ParsedJson& object, std::string_view what, const fs::path& source) {
  const ParsedJson& value = member(object, "type");
  if (!value.is_string()) throw Error::input(fmt::format("{} has no type", what)).in(source);
  return value.get<std::string>();
}

TextPattern pattern_member(const ParsedJson& object, const fs::path& source) {
  const ParsedJson& pattern = member(object, "pattern");
  if (pattern.is_string()) return TextPattern::literal(pattern.get_ref<const std::string&>());
  const ParsedJson& literal = member(pattern, "String");
  if (literal.is_string()) return TextPattern::literal(literal.get_ref<const std::string&>());
  const ParsedJson& regex = member(pattern, "Regex");
  if (regex.is_string()) {
    return TextPattern::regex(regex.get_ref<const std::string&>(), RegexDialect::oniguruma);
  }
  throw Error::input("pattern is neither a String nor a Regex").in(source);
}

}  // namespace assay
