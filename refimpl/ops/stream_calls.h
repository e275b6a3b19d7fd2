// Hyper-connections (arXiv 2409.19606), held on the manifold of doubly stochastic matrices (arXiv 2512.24880):
// the residual is m streams x_1 … x_m. With c = scale · fn(x / rms(x)) + base over all streams side by side,
//
//   read    σ(c) + ε, m of them: what a block is given is Σ_j read_j x_j
//   write   2 σ(c), m of them, and mix [m, m] = sinkhorn(softmax of each row of c + ε): stream k becomes
//           write_k · y + Σ_j mix[j, k] x_j, y what the block gave
//
// sinkhorn divides columns by their sum + ε, then rows and columns in turn. After the last layer the streams are
// read once more, by weights of their own.
//
// Independent ones (HY4) mix nothing: write is magnitude · σ(c) + ε, and stream k becomes write_k · y + x_k, rounded once.
#pragma once

#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

struct StreamWeightsCall {
  Matrix streams;         // [tokens, m · width]
  WeightView fn;          // [(2 + m) m, m · width]; [2 m, …]: nothing is mixed; [m, …]: to read alone
  WeightView base;        // a number a row of fn
  WeightView scale;       // of read, write and mix; or of read
  std::size_t count = 1;  // m
  std::size_t iterations = 1;  // of Sinkhorn's
  double epsilon = 0;          // of the weights
  double magnitude = 2, write_epsilon = 0;
  double norm_epsilon = 0;  // of the root mean square
};

// Of each token, never rounded to bfloat16: references keep them in float32.
struct StreamWeights {
  std::vector<double> read, write;  // [tokens, m]
  std::vector<double> mix;          // [tokens, m · m], by rows; or none
};

// No kernels yet: plain loops, whatever Ops the rest runs on.
StreamWeights stream_weights(Ops& ops, const StreamWeightsCall& call);
// Σ_j read_j x_j: [tokens, width]
Matrix read_streams(Ops& ops, const Matrix& streams, const StreamWeights& weights);
// write_k · y + Σ_j mix[j, k] x_j: [tokens, m · width]
Matrix write_streams(Ops& ops, const Matrix& streams, const Matrix& y, const StreamWeights& weights);

}  // namespace assay
