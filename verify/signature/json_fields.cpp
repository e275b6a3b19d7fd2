#include "verify/signature/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/signature/encoding.h"

namespace assay::signature {
namespace {

constexpr double kExactDouble = 9007199254740992.0;  // 2^53: whole numbers up to here are themselves

Error is_not(std::string_view name, std::string_view what) {
  return Error::input(fmt::format("{} is missing or not {}", name, what));
}

}  // namespace

const ParsedJson* field(const ParsedJson& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

const ParsedJson& object_in(const ParsedJson& object, std::string_view name) {
  const ParsedJson* value = field(object, name);
  if (value == nullptr || !value->is_object()) throw is_not(name, "an object");
  return *value;
}

const ParsedJson& array_in(const ParsedJson& object, std::string_view name) {
  const ParsedJson* value = field(object, name);
  if (value == nullptr || !value->is_array()) throw is_not(name, "a list");
  return *value;
}

const std::string& text_in(const ParsedJson& object, std::string_view name) {
  const ParsedJson* value = field(object, name);
  if (value == nullptr || !value->is_string()) throw is_not(name, "a text");
  return value->get_ref<const std::string&>();
}

std::string bytes_in(const ParsedJson& object, std::string_view name) {
  auto bytes = decode_base64(text_in(object, name));
  if (!bytes) throw is_not(name, "base64");
  return std::move(*bytes);
}

std::int64_t count_in(const ParsedJson& object, std::string_view name) {
  const ParsedJson* value = field(object, name);
  if (value != nullptr && value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<std::int64_t>(number);
  }
  // A protobuf Struct knows no whole numbers: 1000 becomes 1000.0.
  if (value != nullptr && value->is_number_float()) {
    const double number = value->get<double>();
    if (number >= 0 && number <= kExactDouble && std::trunc(number) == number)
      return static_cast<std::int64_t>(number);
  }
  if (value != nullptr && value->is_string()) {
    const auto number = parse_u64(value->get_ref<const std::string&>());
    if (number && *number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<std::int64_t>(*number);
  }
  throw is_not(name, "a number from 0 up");
}

}  // namespace assay::signature
