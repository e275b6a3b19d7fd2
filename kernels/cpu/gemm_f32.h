// y = x · Wᵀ in float32, W packed into panels of neighbouring outputs.
//
//   x [tokens, K]   W [outputs, K], decoded from whatever it is stored in   y [tokens, outputs]
//
// A panel holds `panel_width()` outputs, transposed: [K][width]. The inner loop keeps a tile of tokens ×
// width sums in registers; each step of k takes one vector pair of the panel and one broadcast a token. Every
// sum runs over k in order with fused multiply-adds, whatever the number of tokens and wherever the tile
// lies: a row's result does not depend on its neighbours (batch invariance).
#pragma once

#include <cstddef>
#include <span>

namespace assay::cpu {

// Outputs in a panel: two vectors of the instruction set in use.
std::size_t panel_width();

// rows[n] [terms], for n < count; those beyond are taken for zero → panel [terms][width].
void pack_panel(const float* const* rows, std::size_t count, std::size_t terms, float* panel);

// x [tokens, stride] → tile by tile as the product reads it: of the tile that begins with token t and has R
// rows, at packed + t · terms, as [terms][R].
void pack_tokens(const float* x, std::size_t stride, std::size_t tokens, std::size_t terms, float* packed);

struct GemmTile {
  const float* x;  // [tokens, x_stride], or packed
  std::size_t tokens, x_stride;
  const float* panel;  // [terms][panel_width()], panel_stride apart: readable to the last lane
  std::size_t terms;
  float* y;  // [tokens, y_stride], at the panel's first output
  std::size_t y_stride;
  std::size_t outputs;           // of the panel that exist; ≤ panel_width()
  std::size_t panel_stride = 0;  // 0: panel_width()
  bool accumulate = false;       // y += …
  bool x_packed = false;         // by pack_tokens()
};
void multiply_panel(const GemmTile& tile);

}  // namespace assay::cpu
