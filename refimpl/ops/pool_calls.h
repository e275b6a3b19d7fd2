// Keys that stand for `ratio` tokens each (DeepSeek-V4), one for every whole window, by channel:
//
//   entry[e] = Σ_j softmax_j(gate[j] + position[j]) · value[j]      j: the tokens of window e
//
// Overlapping, a token has two of each: entry e takes the first half of those of window e - 1 and the second half of
// those of window e.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

struct PoolCall {
  Matrix values, gates;  // [tokens, width], or [tokens, 2 · width] overlapping
  WeightView position;   // [ratio, columns of the above]
  std::size_t ratio = 1;
  bool overlapping = false;
};

// [tokens / ratio, width]. No kernels yet: plain loops, whatever Ops the rest runs on.
Matrix pool(Ops& ops, const PoolCall& call);

}  // namespace assay
