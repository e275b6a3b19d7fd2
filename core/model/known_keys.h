// What a forward rule, or whatever else takes a model up, knows of the keys of a config.json.
#pragma once

#include <span>
#include <string_view>

namespace assay {

struct FixedKey {
  std::string_view key;
  std::string_view computed;  // the one value that is, as JSON
};

struct ConfigKeys {
  std::span<const std::string_view> used;  // all of them
  std::span<const std::string_view> idle = {};
  std::span<const FixedKey> fixed = {};
};

}  // namespace assay
