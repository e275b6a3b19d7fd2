// Code points and their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::grammar {

// The code point at `at`, which is moved behind it; nullopt, and `at` as it was, where that is no UTF-8 (an overlong
// form, a surrogate, a byte that begins nothing).
std::optional<std::uint32_t> next_code_point(std::string_view text, std::size_t& at);
std::string utf8_of(std::uint32_t code_point);

}  // namespace assay::grammar
