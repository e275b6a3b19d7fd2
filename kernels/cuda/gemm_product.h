// Which weights the products take, and which of their kernels computes a given one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/machine.h"
#include "refimpl/ops/interface.h"

namespace assay::cuda {

// x · Wᵀ under an arithmetic, for a weight that these kernels can read.
struct Product {
  GemmShape shape;
  bool packed = false;  // GGUF's Q8_0: to be taken apart first
};
std::optional<Product> product_of(const WeightView& weight, const Arithmetic& arithmetic);
// All of one form, so that one launch can take them together.
bool same_form(const std::vector<WeightView>& weights);

Finish finish_of(GemmMath math, const Arithmetic& arithmetic, ResultRounding rounding);

// mma_half: mma, of FP8 taken to float16. wgmma_tma: wgmma, fed by the copy engine.
enum class TensorUnit : std::uint8_t { mma, mma_half, wgmma, wgmma_tma };

// A kernel of the registry: "cuda." and, for experts in groups, "cuda.grouped_" before its name.
struct GemmKind {
  std::string name, about;
  TensorUnit unit;
  std::vector<GemmMath> maths;
  double roundoff;            // unit roundoff of a sum on the tensor cores
  std::size_t promotion = 0;  // products summed there at most, before float32 takes over; 0: all of them

  bool computes(const Product& product, const DeviceLimits& limits,
                std::span<const std::size_t> group_rows) const;
};
const std::vector<GemmKind>& gemm_kinds();
GemmPlan plan_gemm(TensorUnit unit, const DeviceLimits& limits, const GemmShape& shape,
                   std::span<const std::size_t> group_rows);
void launch_gemm(TensorUnit unit, const GemmLaunchers& launchers, const GemmPlan& plan,
                 const GemmShape& shape, const GemmArgs& args, Stream stream);

}  // namespace assay::cuda
