// y[t, r] = Σ_k W[r, k]·x[t, k] for a few tokens and weights in GGUF blocks, in integers: codes of the stored bytes,
// as they are unpacked to 8 bits, by an input of 8 bits (int8_input.h). One instruction multiplies 32 pairs
// and adds neighbours, twice what 16 bits do.
//
//   Σ W·x = Σ_groups scale_W · scale_x · (Σ code · q) + minimum_W · Σ x
//
// Codes are taken without a sign, 0 … 63 at most or the magnitude of an 8-bit one, so that two products fit
// 16 bits: 2 · 128 · 127 < 2^15. In super-blocks, with codes of 4 to 6 bits, more of them do, and are summed
// there. The inner sums are exact; what is rounded are those over groups, in float32. Codes are unpacked once for
// several tokens; a token's bits are the same whoever is beside it.
#pragma once

#include <cstddef>
#include <span>

#include "core/numeric/element_type.h"
#include "kernels/cpu/int8_input.h"
#include "kernels/cpu/stored_rows.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// Blocks of 256 codes: for all of these inputs have one order.
constexpr bool is_super_block(ElementType weight) {
  return weight == ElementType::Q4_K || weight == ElementType::Q5_K || weight == ElementType::Q6_K;
}
// The inputs as they are multiplied by blocks of such weights with the instructions that are chosen.
Int8Input int8_input(std::span<const float> x, ElementType weight);

// Rows [first, first + count) of a weight that has_integer_rows, in y's columns of that number, by
// inputs that int8_input() made for it; y is the whole result, [tokens, outputs].
void int8_row_dots(const WeightView& weight, std::size_t first, std::size_t count,
                   std::span<const Int8Input> x, const Matrix& y);

}  // namespace assay::cpu
