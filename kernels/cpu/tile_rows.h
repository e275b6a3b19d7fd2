// How tokens are cut into the tiles whose sums stay in registers.
#pragma once

#include <cstddef>

namespace assay::cpu {

// Terms at a time, so that a panel's part (16 outputs of float32: 16 KiB) stays in the nearest cache beside a
// tile's.
inline constexpr std::size_t kTermsAtOnce = 256;

// Panels of a piece of work: all tokens' terms of such a part are fetched into the second-level cache once for them.
inline constexpr std::size_t kPanelsAPiece = 4;

// 2 vectors a row: 24 of the 32 registers of AVX-512, 12 of the 16 elsewhere.
inline constexpr std::size_t kMostTileRows = 12;
constexpr std::size_t tallest_tile(bool many_registers) {
  return many_registers ? 12 : 6;
}

// The tallest tile, no taller than `tallest`, that `left` rows fill.
constexpr std::size_t rows_of_tile(std::size_t tallest, std::size_t left) {
  for (const std::size_t rows : {std::size_t{12}, std::size_t{6}, std::size_t{4}, std::size_t{2}}) {
    if (rows <= tallest && rows <= left) return rows;
  }
  return 1;
}

}  // namespace assay::cpu
