// The gated delta rule in float32. Decays, β and the lengths of q and k are computed for all tokens first; then
//
//   recurrent   each head token by token: the state is read twice and written once for each
//   chunked     each head in chunks of kDeltaChunk tokens: the products with the state and with each other of a
//               chunk's keys and queries are products of matrices, and what a token gets of those before it in the chunk
//               a triangle, solved block by block (refimpl/ops/delta_rule.cpp has the formulas)
#pragma once

#include "kernels/cpu/scan.h"
#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kDeltaChunk = 48;  // whole blocks
inline constexpr std::size_t kDeltaBlock = 12;  // a tile of the product

Matrix delta_rule(Ops& ops, const DeltaRuleCall& call, ScanWay way);

}  // namespace assay::cpu
