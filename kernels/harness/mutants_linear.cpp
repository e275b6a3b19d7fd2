// Faults of matrix products. The first eleven are those of which published acceptance rules let up to nine
// pass; then what quantized weights, batching and memory add.
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "core/numeric/codec.h"
#include "kernels/harness/mutants_linear.h"

namespace assay {
namespace {

float to_bf16(double x) {
  return decode(kBF16, encode(kBF16, static_cast<float>(x), Overflow::special));
}

std::vector<Mutant<LinearCall>> gemm_faults() {
  std::vector<Mutant<LinearCall>> all;
  const auto element = [&](std::string_view name, const std::function<float(float)>& change) {
    all.push_back(
        {.name = name, .family = "GEMM", .run = [change](ReferenceOps& ops, const LinearCall& call, double) {
           const std::size_t at = call.weight.outputs() / 2;
           return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
             return r + 1 == call.x.rows() && c == at ? change(x) : x;
           });
         }});
  };
  element("one NaN", [](float) { return std::numeric_limits<float>::quiet_NaN(); });
  element("one element zero", [](float) { return 0.0F; });
  all.push_back({.name = "one element × (1 - size)",
                 .family = "GEMM",
                 .unit = "× 1 -",
                 .sizes = {0.9, 0x1p-4, 0x1p-8, 0x1p-12, 0x1p-14, 0x1p-16, 0x1p-18, 0x1p-20, 0x1p-22},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
                     return r == 0 && c == 0 ? static_cast<float>(x * (1 - size)) : x;
                   });
                 }});
  all.push_back({.name = "a tile of zeros",
                 .family = "GEMM",
                 .unit = "side",
                 .sizes = {16, 8, 4, 2, 1},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
                     return static_cast<double>(r) < size && static_cast<double>(c) < size ? 0.0F : x;
                   });
                 }});
  all.push_back({.name = "two tokens swapped",
                 .family = "GEMM",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   const Matrix right = run_reference(ops, call);
                   return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
                     if (right.rows() < 2 || r > 1) return x;
                     return right.row<float>(1 - r)[c];
                   });
                 }});
  all.push_back({.name = "two outputs swapped",
                 .family = "GEMM",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   const Matrix right = run_reference(ops, call);
                   return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
                     return right.columns() < 2 || c > 1 ? x : right.row<float>(r)[1 - c];
                   });
                 }});
  all.push_back({.name = "one of 16 column blocks × (1 + size)",
                 .family = "GEMM",
                 .unit = "× 1 +",
                 .sizes = {0.05, 0x1p-8, 0x1p-12, 0x1p-14, 0x1p-16, 0x1p-18, 0x1p-20, 0x1p-22},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   const std::size_t block = (call.weight.outputs() + 15) / 16;
                   return changed(ops, call, [&](std::size_t, std::size_t c, float x) {
                     return c / block == 0 ? static_cast<float>(x * (1 + size)) : x;
                   });
                 }});
  all.push_back(
      {.name = "all × 1.01", .family = "GEMM", .run = [](ReferenceOps& ops, const LinearCall& call, double) {
         return changed(ops, call, [](std::size_t, std::size_t, float x) { return x * 1.01F; });
       }});
  all.push_back({.name = "all × (1 + size)",
                 .family = "GEMM",
                 .unit = "× 1 +",
                 .sizes = {0.0039, 0x1p-10, 0x1p-12, 0x1p-14, 0x1p-16, 0x1p-18, 0x1p-20, 0x1p-22},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   return changed(ops, call, [&](std::size_t, std::size_t, float x) {
                     return static_cast<float>(x * (1 + size));
                   });
                 }});
  all.push_back({.name = "the last terms dropped",
                 .family = "GEMM",
                 .unit = "terms",
                 .sizes = {32, 16, 8, 4, 2, 1},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   const std::size_t inputs = call.weight.inputs(),
                                     kept = inputs - std::min(inputs - 1, static_cast<std::size_t>(size));
                   return over_terms(ops, call, 0, kept);
                 }});
  all.push_back({.name = "sums rounded to BF16 now and then",
                 .family = "GEMM",
                 .unit = "every … terms",
                 .sizes = {128, 256, 512},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double size) {
                   return in_pieces(ops, call, static_cast<std::size_t>(size),
                                    [](float sum, float part) { return to_bf16(to_bf16(sum) + part); });
                 }});
  return all;
}

std::vector<Mutant<LinearCall>> precision_faults() {
  std::vector<Mutant<LinearCall>> all;
  all.push_back({.name = "activations rounded on the way in",
                 .family = "silent TF32 or BF16",
                 .unit = "mantissa bits",
                 .sizes = {7, 10, 13, 16},
                 .run = [](ReferenceOps& ops, const LinearCall& call, double bits) {
                   LinearCall rounded = call;
                   rounded.x = ops.allocate(call.x.rows(), call.x.columns());
                   for (std::size_t r = 0; r < call.x.rows(); ++r) {
                     for (std::size_t c = 0; c < call.x.columns(); ++c) {
                       int exponent = 0;
                       const double fraction = std::frexp(call.x.row<float>(r)[c], &exponent);
                       rounded.x.row<float>(r)[c] = static_cast<float>(
                           std::ldexp(std::nearbyint(std::ldexp(fraction, static_cast<int>(bits) + 1)),
                                      exponent - static_cast<int>(bits) - 1));
                     }
                   }
                   return run_reference(ops, rounded);
                 }});
  all.push_back({.name = "sums saturate at 65504",
                 .family = "fp16 overflow (24)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   return changed(ops, call, [](std::size_t, std::size_t, float x) {
                     return std::fmin(std::fmax(x, -65504.0F), 65504.0F);
                   });
                 }});
  all.push_back({.name = "subnormal weights flushed to zero",
                 .family = "FTZ (24)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   if (call.weight.type != ElementType::F16) return run_reference(ops, call);
                   return with_weights(ops, call, [](std::vector<float>& w) {
                     for (float& x : w) x = std::fabs(x) < 0x1p-14F ? 0.0F : x;
                   });
                 }});
  return all;
}

std::vector<Mutant<LinearCall>> scale_faults() {
  std::vector<Mutant<LinearCall>> all;
  const auto scales =
      [&](std::string_view name,
          const std::function<float(const LinearCall&, const std::vector<float>&, std::size_t, std::size_t)>&
              of) {
        all.push_back({.name = name,
                       .family = "block scales (18)",
                       .run = [of](ReferenceOps& ops, const LinearCall& call, double) {
                         return with_scales(
                             ops, call, [&](const std::vector<float>& grid, std::size_t r, std::size_t c) {
                               return of(call, grid, r, c);
                             });
                       }});
      };
  const auto at = [](const LinearCall& call, const std::vector<float>& grid, std::size_t r,
                     std::size_t block) {
    const std::size_t across = call.weight.scale_columns;
    return grid[std::min(r, call.weight.rows - 1) * across + std::min(block, across - 1)];
  };
  scales("scales transposed",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           const std::size_t down = r / call.weight.block_rows, across = c / call.weight.block_columns;
           return at(call, grid, across * call.weight.block_rows, down);
         });
  scales("scales applied twice",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           const float s = at(call, grid, r, c / call.weight.block_columns);
           return s * s;
         });
  scales("scales missing",
         [](const LinearCall&, const std::vector<float>&, std::size_t, std::size_t) { return 1.0F; });
  scales("a ragged last block of rows takes the scale before it",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           const std::size_t whole = call.weight.rows / call.weight.block_rows * call.weight.block_rows;
           return at(call, grid, whole != 0 && r >= whole ? whole - 1 : r, c / call.weight.block_columns);
         });
  scales("a ragged last block of columns takes the scale before it",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           const std::size_t whole = call.weight.columns / call.weight.block_columns;
           return at(call, grid, r,
                     whole != 0 && c / call.weight.block_columns >= whole ? whole - 1
                                                                          : c / call.weight.block_columns);
         });
  scales("blocks of 64 taken for blocks of 128",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           const bool small = call.weight.block_rows == 64;
           return small ? at(call, grid, r / 128 * 128, c / 128 * 2)
                        : at(call, grid, r, c / call.weight.block_columns);
         });
  scales("scales rounded to a power of two",
         [at](const LinearCall& call, const std::vector<float>& grid, std::size_t r, std::size_t c) {
           return std::exp2(std::ceil(std::log2(at(call, grid, r, c / call.weight.block_columns))));
         });
  all.push_back({.name = "the halves of a GGUF block in the wrong order",
                 .family = "block layout (18)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   if (info(call.weight.type).in_safetensors) return run_reference(ops, call);
                   return with_weights(ops, call, [](std::vector<float>& w) {
                     for (std::size_t i = 0; i + 32 <= w.size(); i += 32) {
                       for (std::size_t j = 0; j < 16; ++j) std::swap(w[i + j], w[i + 16 + j]);
                     }
                   });
                 }});
  return all;
}

// Faults that numbers do not show, or not on every input.
std::vector<Mutant<LinearCall>> structure_faults() {
  std::vector<Mutant<LinearCall>> all;
  const auto plus = [](float a, float b) { return a + b; };
  const auto halves = [plus](ReferenceOps& ops, const LinearCall& call) {
    return in_pieces(ops, {call.x, call.weight, {}, call.rounding},
                     std::max<std::size_t>(1, call.weight.inputs() / 2), plus);
  };
  all.push_back({.name = "another order of sums for more than 4 tokens",
                 .family = "batch invariance (22)",
                 .bits = true,
                 .run = [halves](ReferenceOps& ops, const LinearCall& call, double) {
                   return call.x.rows() > 4 ? halves(ops, call) : run_reference(ops, call);
                 }});
  all.push_back({.name = "another order of sums for more threads",
                 .family = "batch invariance (22)",
                 .bits = true,
                 .run = [halves](ReferenceOps& ops, const LinearCall& call, double) {
                   return ops.jobs() > 1 ? halves(ops, call) : run_reference(ops, call);
                 }});
  all.push_back({.name = "another order of sums now and then",
                 .family = "races",
                 .bits = true,
                 .run = [halves](ReferenceOps& ops, const LinearCall& call, double) {
                   static std::atomic<std::uint32_t> calls{0};
                   return calls++ % 5 == 1 ? halves(ops, call) : run_reference(ops, call);
                 }});
  all.push_back({.name = "rows taken for contiguous",
                 .family = "strides",
                 .bits = true,
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   LinearCall flat = call;
                   flat.x = ops.allocate(call.x.rows(), call.x.columns());
                   for (std::size_t r = 0; r < call.x.rows(); ++r) {
                     for (std::size_t c = 0; c < call.x.columns(); ++c)
                       flat.x.row<float>(r)[c] = call.x.row<float>(0)[r * call.x.columns() + c];
                   }
                   return run_reference(ops, flat);
                 }});
  all.push_back({.name = "one element written behind the last row",
                 .family = "bounds",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   Matrix y = run_reference(ops, call);
                   if (!y.empty()) y.row<float>(y.rows() - 1)[y.columns()] = 0;
                   return y;
                 }});
  all.push_back({.name = "the last output not written",
                 .family = "poisoned rows (13)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   const Matrix right = run_reference(ops, call);
                   Matrix y = ops.allocate(right.rows(), right.columns());
                   for (std::size_t r = 0; r < y.rows(); ++r) {
                     for (std::size_t c = 0; c + 1 < y.columns(); ++c)
                       y.row<float>(r)[c] = right.row<float>(r)[c];
                   }
                   return y;
                 }});
  all.push_back({.name = "zero times the last token added to all",
                 .family = "padded rows (13)",
                 .bits = true,
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   const float last = call.x.empty() ? 0 : call.x.row<float>(call.x.rows() - 1)[0];
                   return changed(ops, call, [&](std::size_t, std::size_t, float x) { return x + 0 * last; });
                 }});
  all.push_back({.name = "weights addressed modulo 65536",
                 .family = "offset overflow (19)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   return with_weights(ops, call, [](std::vector<float>& w) {
                     for (std::size_t i = 65536; i < w.size(); ++i) w[i] = w[i % 65536];
                   });
                 }});
  all.push_back({.name = "the bias left out",
                 .family = "bias (25)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   return run_reference(ops, LinearCall{call.x, call.weight, {}, call.rounding});
                 }});
  all.push_back({.name = "the bias added to the first token only",
                 .family = "bias (25)",
                 .run = [](ReferenceOps& ops, const LinearCall& call, double) {
                   const Matrix bare = run_reference(ops, LinearCall{call.x, call.weight, {}, call.rounding});
                   return changed(ops, call, [&](std::size_t r, std::size_t c, float x) {
                     return r == 0 ? x : bare.row<float>(r)[c];
                   });
                 }});
  return all;
}

}  // namespace

template <>
std::vector<Mutant<LinearCall>> mutants_of() {
  std::vector<Mutant<LinearCall>> all;
  for (const auto& more : {gemm_faults(), precision_faults(), scale_faults(), structure_faults(),
                           linear_shape_faults(), tensor_core_faults()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace assay
