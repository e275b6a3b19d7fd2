// Decoding multiplies the same weights in the same order for every token, and between two of them threads wait: for the one
// that adds, norms and rounds, or for the last piece of a product. Meanwhile they fetch what they will read first of the
// weight that came next the last time.
#pragma once

#include <cstddef>

namespace assay::cpu {

// Rows of a weight as threads take them: `pieces` pieces, evenly shared out.
struct WeightInPieces {
  const std::byte* at = nullptr;
  std::size_t piece_bytes = 0, pieces = 0;
};

// To be called before this weight's loop, on the thread that begins it.
void fetch_next_after(const WeightInPieces& weight, int jobs);

}  // namespace assay::cpu
