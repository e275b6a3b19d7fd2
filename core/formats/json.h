// JSON from strangers: bounded in size and depth, duplicate keys refused, errors with file and byte offset.
//
// Small documents (config.json, a tree listing, a tokenizer) are read whole; headers and indexes, which may have
// 100 MB, are read event by event (core/formats/json_events.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// What is read is kept in a std::map (nlohmann::json): the ordered Json that reports are written with looks
// keys up one by one, and a hostile object of a million keys would take it hours.
using ParsedJson = nlohmann::json;

struct JsonLimits {
  std::uint64_t max_bytes = 64ull << 20;
  int max_depth = 64;
  bool duplicate_keys = false;  // true: accepted, the last one wins (as most parsers do)
  // Python writes Infinity, -Infinity and NaN, and published config.json hold them ("time_step_limit"): true reads ±1e308
  // and 0 for them, for no shape and no bound is such a number.
  bool python_numbers = false;
};

// As Python's parser reads a config.json: published ones do repeat keys.
inline constexpr JsonLimits kPythonJson = {64ull << 20, 64, true, true};

// Throws Error::input("… at byte N") with `source` as the file. Strict RFC 8259: no BOM, comments, trailing
// bytes, NaN or lone surrogates.
ParsedJson parse_json(std::string_view text, const std::filesystem::path& source,
                      const JsonLimits& limits = {});
ParsedJson read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// Typed access with an Error that names the key: "config.json: hidden_size is a string, not a whole number".
std::uint64_t json_u64(const ParsedJson& value, std::string_view key, const std::filesystem::path& source);
const std::string& json_string(const ParsedJson& value, std::string_view key,
                               const std::filesystem::path& source);

}  // namespace assay
