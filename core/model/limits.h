// What no model has more of: a config or a header that says so is refused before memory is spent on it.
#pragma once

#include <cstdint>

namespace assay {

inline constexpr std::uint64_t kMostLayers = 10'000, kMostExperts = 100'000;

}  // namespace assay
