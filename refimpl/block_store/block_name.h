// What a block is called in the second level: its key, its group of layers, and whether recurrent states lie beside it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/system/text.h"
#include "refimpl/engine/block_pool.h"

namespace assay {

inline std::string block_name(std::size_t group, const BlockKey& key, bool with_states) {
  return to_hex(key.bytes) + "-" + std::to_string(group) + (with_states ? "-states" : "");
}

// Of a block of this name.
inline BlockKey block_key_of(std::string_view name) {
  BlockKey key;
  from_hex(name.substr(0, 2 * key.bytes.size()), key.bytes);
  return key;
}

inline bool is_block_name(std::string_view name) {
  constexpr std::size_t kDigits = 64, kMostOfGroup = 6;
  constexpr std::string_view kStates = "-states";
  if (name.ends_with(kStates)) name.remove_suffix(kStates.size());
  if (name.size() < kDigits + 2 || name.size() > kDigits + 1 + kMostOfGroup || name[kDigits] != '-')
    return false;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view key = name.substr(0, kDigits), group = name.substr(kDigits + 1);
  return std::all_of(key.begin(), key.end(), is_hex) && std::all_of(group.begin(), group.end(), is_digit);
}

}  // namespace assay
