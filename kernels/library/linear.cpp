#include "kernels/library/linear.h"

#include <algorithm>
#include <utility>

#include "kernels/library/gemm.h"

namespace assay {
namespace {

// W as [outputs, inputs] floats.
std::vector<float> decoded(const WeightView& weight) {
  std::vector<float> stored(weight.rows * weight.columns);
  decode_rows(weight, 0, weight.rows, stored.data());
  if (!weight.input_major) return stored;
  std::vector<float> transposed(stored.size());
  for (std::size_t i = 0; i < weight.rows; ++i) {
    for (std::size_t o = 0; o < weight.columns; ++o)
      transposed[o * weight.rows + i] = stored[i * weight.columns + o];
  }
  return transposed;
}

Matrix library_linear(Ops& ops, const LinearCall& call, LibraryGemm gemm) {
  const std::size_t inputs = call.weight.inputs(), outputs = call.weight.outputs();
  Matrix y = ops.allocate(call.x.rows(), outputs);
  if (y.empty()) return y;
  std::vector<float> bias(outputs);
  if (call.bias) decode_rows(call.bias, 0, 1, bias.data());
  for (std::size_t t = 0; t < y.rows(); ++t) std::copy(bias.begin(), bias.end(), y.row<float>(t));
  if (inputs == 0) return y;
  const std::vector<float> w = decoded(call.weight);
  std::vector<float> products(y.rows() * outputs);
  gemm({.x = call.x.row<float>(0),
        .x_stride = call.x.stride(),
        .w = w.data(),
        .y = products.data(),
        .tokens = y.rows(),
        .inputs = inputs,
        .outputs = outputs,
        .jobs = ops.jobs()});
  for (std::size_t t = 0; t < y.rows(); ++t) {
    for (std::size_t o = 0; o < outputs; ++o) y.row<float>(t)[o] += products[t * outputs + o];
  }
  return y;
}

[[maybe_unused]] Kernel<LinearCall> library_kernel(std::string name, std::string about, LibraryGemm gemm) {
  return {.name = std::move(name),
          .about = std::move(about),
          .takes = [](const Arithmetic& arithmetic,
                      const LinearCall&) { return arithmetic.precision == Precision::f32; },
          .run = [gemm](Ops& ops, const LinearCall& call) { return library_linear(ops, call, gemm); }};
}

}  // namespace

std::vector<Kernel<LinearCall>> library_linear_kernels() {
  std::vector<Kernel<LinearCall>> kernels;
#ifdef ASSAY_HAS_OPENBLAS
  kernels.push_back(library_kernel("library.openblas", "cblas_sgemm", openblas_gemm));
#endif
#ifdef ASSAY_HAS_ONEDNN
  kernels.push_back(library_kernel("library.onednn", "dnnl::matmul in f32", onednn_gemm));
#endif
  return kernels;
}

}  // namespace assay
