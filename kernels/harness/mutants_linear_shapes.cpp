// Faults of matrix products that show at some shapes only: tails, strips, and sums so long that a part of
// them is little beside a budget that is too wide.
#include <algorithm>

#include "kernels/harness/made_weight.h"
#include "kernels/harness/mutants_linear.h"
#include "refimpl/ops/w8a8.h"

namespace assay {
namespace {

constexpr std::size_t kManyInputs = 7168;  // of DeepSeek-V3
constexpr std::size_t kStrip = 1 << 20;

// The product under W8A8 with other numbers for the weight: x quantized as the arithmetic says.
Matrix eight_bits(ReferenceOps& ops, const LinearCall& call,
                  const std::function<void(std::vector<float>&)>& change) {
  ReferenceOps wide(Arithmetic{Precision::f32}, ops.jobs());
  const QuantizedMatrix q = run_reference(
      ops, QuantizeCall{call.x, {.codes = call.weight.type, .block_rows = 1, .block_columns = 128}});
  const Matrix y =
      with_weights(wide, {run_reference(wide, DequantizeCall{q}), call.weight, {}, call.rounding}, change);
  Matrix out = ops.allocate(y.rows(), y.columns());
  for (std::size_t r = 0; r < y.rows(); ++r) {
    for (std::size_t c = 0; c < y.columns(); ++c)
      out.row<float>(r)[c] = static_cast<float>(ops.arithmetic().round(y.row<float>(r)[c]));
  }
  return out;
}

Mutant<LinearCall> on_tensor_cores(
    std::string_view name, std::string_view family,
    const std::function<void(const WeightView&, std::vector<float>&)>& change) {
  return {.name = name,
          .family = family,
          .roundoffs = {.accumulator = 0x1p-14, .promoted = 128},
          .takes =
              [](const Arithmetic& arithmetic, const LinearCall& call) {
                return arithmetic.precision == Precision::fp8_block && is_w8a8(call.weight, arithmetic) &&
                       call.weight.inputs() >= kManyInputs;
              },
          .run =
              [change](ReferenceOps& ops, const LinearCall& call, double) {
                return eight_bits(ops, call, [&](std::vector<float>& w) { change(call.weight, w); });
              }};
}

}  // namespace

std::vector<Mutant<LinearCall>> linear_shape_faults() {
  return {{.name = "the last input left out where their number modulo 8 is 2, 3 or 6",
           .family = "tails",
           .run =
               [](ReferenceOps& ops, const LinearCall& call, double) {
                 const std::size_t inputs = call.weight.inputs(), rest = inputs % 8;
                 const bool lost = inputs > 8 && (rest == 2 || rest == 3 || rest == 6);
                 return lost ? over_terms(ops, call, 0, inputs - 1) : run_reference(ops, call);
               }},
          {.name = "strips of an input-major weight overwrite those before",
           .family = "strips",
           .run =
               [](ReferenceOps& ops, const LinearCall& call, double) {
                 const std::size_t rows = std::max<std::size_t>(1, kStrip / call.weight.columns);
                 if (!call.weight.input_major || call.weight.rows <= rows) return run_reference(ops, call);
                 const std::size_t first = (call.weight.rows - 1) / rows * rows;
                 return over_terms(ops, call, first, call.weight.rows - first);
               }},
          without_subnormals<LinearCall>()};
}

std::vector<Mutant<LinearCall>> tensor_core_faults() {
  return {on_tensor_cores("on FP8 tensor cores: a block of 128 of 7168 inputs left out", "lost blocks (18)",
                          [](const WeightView& view, std::vector<float>& w) {
                            for (std::size_t i = 0; i < w.size(); ++i) {
                              if (i % view.columns / 128 == 5) w[i] = 0;
                            }
                          }),
          on_tensor_cores("on FP8 tensor cores: scales transposed", "block scales (18)",
                          [](const WeightView& view, std::vector<float>& w) {
                            rescale(
                                view,
                                [&](const std::vector<float>& grid, std::size_t r, std::size_t c) {
                                  const std::size_t row = c / view.block_columns * view.block_rows,
                                                    column = r / view.block_rows;
                                  return grid[std::min(row, view.rows - 1) * view.scale_columns +
                                              std::min(column, view.scale_columns - 1)];
                                },
                                w);
                          }),
          on_tensor_cores("on FP8 tensor cores: one scale 30 % off", "block scales (18)",
                          [](const WeightView& view, std::vector<float>& w) {
                            for (std::size_t i = 0; i < w.size(); ++i) {
                              if (i / view.columns < view.block_rows &&
                                  i % view.columns / view.block_columns == 1)
                                w[i] *= 1.3F;
                            }
                          })};
}

}  // namespace assay
