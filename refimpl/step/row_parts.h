// How a row of a layer's cache falls into heads: keys and values of each, or one latent with a rotary part behind it.
#pragma once

#include <cstddef>

#include "refimpl/step/kv_cache.h"

namespace assay {

inline constexpr double kFullBytes = 2;  // of a number in full, as engines keep it: BF16

struct RowPart {
  std::size_t heads = 0, width = 0;  // from the first column on
  std::size_t columns() const { return heads * width; }
};

inline RowPart key_part(const CacheWidth& width) {
  if (width.latent != 0) return {1, width.latent};
  return {width.kv_heads, width.key_width / width.kv_heads};
}
// None of a latent: what lies beside it are an indexer's keys.
inline RowPart value_part(const CacheWidth& width) {
  if (width.latent != 0) return {};
  return {width.kv_heads, width.value_width / width.kv_heads};
}
// Columns of a row that no part has: they stay in full.
inline std::size_t other_columns(const CacheWidth& width) {
  return width.key_width + width.value_width - key_part(width).columns() - value_part(width).columns();
}
inline bool can_be_cut(const CacheWidth& width) {
  return width.key_width != 0 && (width.kv_heads != 0 || width.latent != 0);
}

}  // namespace assay
