// JSON from strangers: bounded in size and depth, duplicate keys refused, errors with file and byte offset.
//
// Small documents (config.json, an index, a tree listing) are read into a Json; a safetensors header, which may be
// 100 MB, has its own event reader in core/formats/safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/system/report.h"

namespace assay {

struct JsonLimits {
  std::uint64_t max_bytes = 64ull << 20;
  int max_depth = 64;
  bool duplicate_keys = false;  // true: accepted, the last one wins (as most parsers do)
};

// Throws Error::input("… at byte N") with `source` as the file. Strict RFC 8259: no BOM, comments, trailing
// bytes, NaN or lone surrogates.
Json parse_json(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits = {});
Json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// Typed access with an Error that names the key: "config.json: hidden_size is a string, not a whole number".
std::uint64_t json_u64(const Json& value, std::string_view key, const std::filesystem::path& source);
const std::string& json_string(const Json& value, std::string_view key, const std::filesystem::path& source);

}  // namespace assay
