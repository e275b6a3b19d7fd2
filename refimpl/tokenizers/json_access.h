// Members of a tokenizer.json object, with defaults and errors that name the key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/formats/json.h"
#include "refimpl/tokenizers/text_pattern.h"

namespace assay {

// A member of a JSON object; null where it is absent, or `object` is none.
inline const ParsedJson& member(const ParsedJson& object, std::string_view key) {
  static const ParsedJson null;
  if (!object.is_object()) return null;
  const auto it = object.find(key);
  return it == object.end() ? null : *it;
}

bool bool_member(const ParsedJson& object, std::string_view key, bool otherwise,
                 const std::filesystem::path& source);
std::string string_member(const ParsedJson& object, std::string_view key, std::string_view otherwise,
                          const std::filesystem::path& source);
std::uint64_t u64_member(const ParsedJson& object, std::string_view key, std::uint64_t otherwise,
                         const std::filesystem::path& source);
// The list under `key`; Error::input when it is none.
const ParsedJson& list_member(const ParsedJson& object, std::string_view key,
                              const std::filesystem::path& source);
// The "type" of a component; Error::input when there is none.
std::string component_type(const ParsedJson& object, std::string_view what,
                           const std::filesystem::path& source);

// A "pattern": {"String": literal} or {"Regex": expression}, the latter of Oniguruma.
TextPattern pattern_member(const ParsedJson& object, const std::filesystem::path& source);

}  // namespace assay
