// For a std::unordered_map of names that is asked by views: std::unordered_map<std::string, T, StringHash, std::equal_to<>>.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace assay {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
};

}  // namespace assay
