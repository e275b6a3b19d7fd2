// One matrix product as the libraries take it: y = x · wᵀ in float32.
#pragma once

#include <cstddef>

namespace assay {

struct GemmArguments {
  const float* x;  // [tokens, x_stride]
  std::size_t x_stride;
  const float* w;  // [outputs, inputs]
  float* y;        // [tokens, outputs]
  std::size_t tokens, inputs, outputs;
  int jobs;
};
using LibraryGemm = void (*)(const GemmArguments&);

void openblas_gemm(const GemmArguments& a);
void onednn_gemm(const GemmArguments& a);

}  // namespace assay
