// What a model's layers keep of a text.
#pragma once

#include <algorithm>
#include <vector>

#include "refimpl/step/kv_cache.h"

namespace assay {

// Some layer keeps rows of its tokens, keys at least: not so in Mamba 2.
inline bool keeps_rows(const std::vector<CacheWidth>& widths) {
  return std::any_of(widths.begin(), widths.end(),
                     [](const CacheWidth& width) { return width.key_width > 0; });
}
// Some layer is recurrent.
inline bool keeps_states(const std::vector<CacheWidth>& widths) {
  return std::any_of(widths.begin(), widths.end(),
                     [](const CacheWidth& width) { return !width.states.empty(); });
}

}  // namespace assay
