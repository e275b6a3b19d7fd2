#include "kernels/cuda/gemm_product.h"

#include <algorithm>
#include <limits>

#include "kernels/operands/rounded_operands.h"
#include "refimpl/ops/w8a8.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostExact = 1 << 17;  // products of -128 … 127 whose sum is below 2^31
constexpr std::size_t kMostCounted = std::numeric_limits<std::int32_t>::max();

// Unit roundoffs of sums on tensor cores. They add the products of a step, aligned to the largest of them and
// cut off below, and cut the sum: for 16-bit types to float32 with at least two bits more (Fasi, Higham,
// Mikaitis, Pranesh 2021, "Numerical behavior of NVIDIA tensor cores"), so that four times float32's is an
// upper bound; of FP8 sm_89 and sm_90 keep about 14 bits (DeepSeek-V3 technical report, §3.3.2).
constexpr double kOf16Bits = 0x1p-22, kOfFp8 = 0x1p-14, kOfIntegers = 0x1p-24;
constexpr std::size_t kFp8Promotion = 128;

std::optional<Codes> codes_of(ElementType type) {
  switch (type) {
    case ElementType::F32: return Codes::f32;
    case ElementType::BF16: return Codes::bf16;
    case ElementType::F16: return Codes::f16;
    case ElementType::F8_E4M3: return Codes::e4m3;
    case ElementType::I8: return Codes::s8;
    default: return std::nullopt;
  }
}

// The longest of 128, 64 and 32 columns that scales' blocks are multiples of.
std::size_t promotion_of(const WeightView& weight) {
  if (weight.kind == FormKind::plain || weight.scale_columns == 1) return 128;
  for (const std::size_t columns : {128u, 64u}) {
    if (weight.block_columns % columns == 0) return columns;
  }
  return kSlab;
}

}  // namespace

std::optional<Product> product_of(const WeightView& weight, const Arithmetic& arithmetic) {
  if (weight.codes == nullptr || weight.input_major || arithmetic.storage() != Real::f32 ||
      weight.columns == 0 || weight.rows > kMostCounted || weight.columns > kMostCounted ||
      rounded_operands(weight, arithmetic))
    return std::nullopt;
  const bool wide = !arithmetic.bfloat16();
  Product product = {.shape = {.math = wide ? GemmMath::exact : GemmMath::bf16,
                               .outputs = weight.rows,
                               .inputs = weight.columns,
                               .promotion = wide ? kSlab : promotion_of(weight)}};
  if (weight.kind == FormKind::plain && weight.type == ElementType::Q8_0) {
    product.shape.codes = Codes::s8;
    product.shape.promotion = kSlab;
    product.packed = true;
    return product;
  }
  const std::optional<Codes> codes = codes_of(weight.type);
  if (!codes) return std::nullopt;
  product.shape.codes = *codes;
  // Codes of 8 bits without a scale are numbers, of FP8; integers without one are nobody's weight.
  if (weight.kind == FormKind::plain && *codes != Codes::s8) return product;
  const bool scaled = weight.kind == FormKind::scaled && bytes_of(*codes) == 1;
  if (!scaled || (weight.scale_columns != 1 && weight.block_columns % kSlab != 0)) return std::nullopt;
  if (is_w8a8(weight, arithmetic)) {
    product.shape.math = *codes == Codes::s8 ? GemmMath::int8 : GemmMath::fp8;
    product.shape.promotion = promotion_of(weight);
    if (*codes == Codes::s8 && weight.columns > kMostExact) return std::nullopt;
  }
  return product;
}

bool same_form(const std::vector<WeightView>& weights) {
  return std::all_of(weights.begin(), weights.end(), [&](const WeightView& w) {
    const WeightView& first = weights.front();
    return w.rows == first.rows && w.columns == first.columns && w.type == first.type &&
           w.kind == first.kind && w.input_major == first.input_major && w.weight_only == first.weight_only &&
           (w.codes == nullptr) == (first.codes == nullptr) && w.row_bytes == first.row_bytes &&
           w.block_rows == first.block_rows && w.block_columns == first.block_columns &&
           w.scale_columns == first.scale_columns &&
           w.first_row % w.block_rows == first.first_row % first.block_rows;
  });
}

Finish finish_of(GemmMath math, const Arithmetic& arithmetic, ResultRounding rounding) {
  if (quantizes_x(math)) return Finish::bfloat16_twice;
  return arithmetic.bfloat16() && rounding == ResultRounding::as_arithmetic ? Finish::bfloat16
                                                                            : Finish::float32;
}

namespace {

GemmShape shape_on(TensorUnit unit, GemmShape shape) {
  if (unit == TensorUnit::mma_half && shape.math == GemmMath::fp8) shape.math = GemmMath::fp8_half;
  return shape;
}

}  // namespace

GemmPlan plan_gemm(TensorUnit unit, const DeviceLimits& limits, const GemmShape& shape,
                   std::span<const std::size_t> group_rows) {
  if (unit == TensorUnit::wgmma || unit == TensorUnit::wgmma_tma)
    return plan_gemm_wgmma(limits, shape, group_rows, unit == TensorUnit::wgmma_tma);
  return plan_gemm_mma(limits, shape_on(unit, shape), group_rows);
}

void launch_gemm(TensorUnit unit, const GemmLaunchers& launchers, const GemmPlan& plan,
                 const GemmShape& shape, const GemmArgs& args, Stream stream) {
  const bool warpgroups = unit == TensorUnit::wgmma || unit == TensorUnit::wgmma_tma;
  const auto launch = warpgroups ? launchers.wgmma : launchers.mma;
  launch(plan, shape_on(unit, shape), args, stream);
}

bool GemmKind::computes(const Product& product, const DeviceLimits& limits,
                        std::span<const std::size_t> group_rows) const {
  return product.shape.codes != Codes::f32 &&
         std::find(maths.begin(), maths.end(), product.shape.math) != maths.end() &&
         std::all_of(group_rows.begin(), group_rows.end(),
                     [](std::size_t rows) { return rows <= kMostCounted; }) &&
         plan_gemm(unit, limits, product.shape, group_rows).launch.fits;
}

const std::vector<GemmKind>& gemm_kinds() {
  using enum TensorUnit;
  static const std::vector<GemmKind> kinds = {
      {"fp8_wgmma_tma",
       "FP8 by blocks on Hopper's warpgroups, fed by its copy engine",
       wgmma_tma,
       {GemmMath::fp8},
       kOfFp8,
       kFp8Promotion},
      {"bf16_wgmma_tma",
       "BF16 on Hopper's warpgroups, fed by its copy engine",
       wgmma_tma,
       {GemmMath::bf16},
       kOf16Bits},
      {"fp8_wgmma", "FP8 by blocks on Hopper's warpgroups", wgmma, {GemmMath::fp8}, kOfFp8, kFp8Promotion},
      {"bf16_wgmma", "BF16 on Hopper's warpgroups", wgmma, {GemmMath::bf16}, kOf16Bits},
      {"fp8_mma", "FP8 by blocks on tensor cores for it", mma, {GemmMath::fp8}, kOfFp8, kFp8Promotion},
      {"fp8_half_mma", "FP8 by blocks, as float16", mma_half, {GemmMath::fp8}, kOf16Bits, kFp8Promotion},
      {"int8_mma", "INT8 by tokens and channels: sums of integers", mma, {GemmMath::int8}, kOfIntegers},
      {"mma",
       "W to bfloat16 in registers; float32 activations as three bfloat16",
       mma,
       {GemmMath::exact, GemmMath::bf16},
       kOf16Bits},
  };
  return kinds;
}

}  // namespace assay::cuda
