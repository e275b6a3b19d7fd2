// Selective state spaces in float32.
//
//   recurrent   each head token by token: a row of its state in vectors, read and written once
//   chunked     each head in chunks of kSpaceChunk tokens, products of matrices (refimpl/ops/state_space.cpp has the
//               formulas); what B and C of a chunk give each other is computed once for all heads of a group. Of heads
//               that forget all columns at one speed: Mamba's own, of one channel each, go token by token.
#pragma once

#include "kernels/cpu/scan.h"
#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kSpaceChunk = 48;  // whole blocks
inline constexpr std::size_t kSpaceBlock = 12;  // a tile of the product

Matrix state_space(Ops& ops, const StateSpaceCall& call, ScanWay way);

}  // namespace assay::cpu
