// y = x · Wᵀ of 16-bit activations and weights that are integers or become such (what and why exactly:
// kernels/operands/int16.h), in integers:
//
//   x [tokens, K] as codes with a scale for each 32   W [outputs, K] as codes with scales and minima a group
//   y[t, o] = Σ_g s_x[t, g]·s_W[o, g] · (Σ_k q_x[t, k]·q_W[o, k]) + minimum[o, g] · Σ_k x[t, k]
//
// The inner sums are exact. One instruction multiplies and adds two neighbours of k for as many outputs as a
// vector has 32-bit lanes, twice what float32 does; of activations of 8 bits and weights of fewer, four
// (byte_tile.h). A panel holds panel_width() outputs, as [K / 2][width] pairs or [K / 4][width] quads. Sums
// over groups are float32, in the order of k, whatever tile a token falls into (batch invariance).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// All tokens' inputs, tile by tile as the product reads them: of the tile that begins with token t and has R
// rows, pairs (quads of `bytes`) begin at t · K / 2 (/ 4) as [K / 2][R], scales and sums at t · K / 32 as
// [K / 32][R], what centres them at t · K / group of the weight's codes.
struct IntTiles {
  // For weights stored as `weight`. `bits` of a code beside its sign: kInt8BlockBits as
  // int8_block.h says, else int16.h.
  IntTiles(const Matrix& x, ElementType weight, int bits, int jobs);
  std::size_t tokens, terms;
  bool bytes;
  std::vector<std::int32_t> codes;
  std::vector<float> scales, sums;
  std::vector<std::int32_t> centring;  // of bytes: -centre · Σ codes of a group (byte_tile.h)
};

// Outputs [first, first + count) of `weight`, kPanelsAPiece panels at most, for all tokens; y is the whole result.
void integer_panel(const IntTiles& x, const WeightView& weight, std::size_t first, std::size_t count,
                   const Matrix& y);

}  // namespace assay::cpu
