// softmax over rows, and a router's choice.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kSoftmaxBlock = 1024;     // of a row
inline constexpr std::size_t kSoftmaxPiece = 1 << 14;  // elements of a thread's piece
inline constexpr std::size_t kGatePiece = 16;          // tokens of one

// Online (Milakov & Gimelshein 2018), a block of a row at a time: the row is read once, each block's
// exponentials are left under the largest number so far, and brought under the row's when they are divided.
void online_softmax(const Matrix& x, const Matrix& y, int jobs);

// As refimpl/ops/moe_gate.cpp says, in float32: scores in vectors, choices by keeping the top_k best in
// order. `weights` [tokens, top_k].
Routing top_k_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule,
                   const Matrix& weights, int jobs);

}  // namespace assay::cpu
