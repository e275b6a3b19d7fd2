// Decoding multiplies the same weights in the same order for every token, and between two of them threads wait: for the one
// that adds, norms and rounds, or for the last piece of a product. Meanwhile they fetch what they will read first of the
// weights that came next the last time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::cpu {

// To be called before a loop over weights, on the thread that begins it. `first`: theirs; `beginnings`: of each thread's
// share of them, as long as may be.
void fetch_next_after(const std::byte* first, std::vector<std::span<const std::byte>> beginnings);

}  // namespace assay::cpu
