#include "core/formats/json.h"

#include <fmt/format.h>

#include <utility>

#include "core/formats/json_apart.h"
#include "core/formats/json_builder.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"

namespace assay {
namespace {

std::string_view type_of(const ParsedJson& value) {
  return value.type_name();
}

ParsedJson parsed(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits,
                  std::string_view name, ApartReader* apart) {
  if (text.size() > limits.max_bytes) {
    throw Error::input(fmt::format("JSON of {} bytes; at most {} are read", text.size(), limits.max_bytes))
        .in(source);
  }
  if (text.starts_with("\xEF\xBB\xBF"))
    throw Error::input("JSON begins with a byte order mark").in(source).at(0);
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error::input("JSON holds a NUL byte").in(source).at(nul);
  }
  return JsonBuilder<ParsedJson>(text, source, limits, name, apart).read();
}

}  // namespace

ParsedJson parse_json(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits) {
  return parsed(text, source, limits, {}, nullptr);
}

ParsedJson parse_json_apart(std::string_view name, ApartReader& reader, std::string_view text,
                            const std::filesystem::path& source, const JsonLimits& limits) {
  return parsed(text, source, limits, name, &reader);
}

ParsedJson read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_small_file(path, limits.max_bytes), path, limits);
}

std::uint64_t json_u64(const ParsedJson& value, std::string_view key, const std::filesystem::path& source) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() < 0) {
    throw Error::input(fmt::format("{} is negative", key)).in(source);
  }
  if (value.is_number_integer()) return value.get<std::uint64_t>();
  throw Error::input(fmt::format("{} is {}, not a whole number", key, type_of(value))).in(source);
}

const std::string& json_string(const ParsedJson& value, std::string_view key,
                               const std::filesystem::path& source) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  throw Error::input(fmt::format("{} is {}, not a string", key, type_of(value))).in(source);
}

}  // namespace assay
