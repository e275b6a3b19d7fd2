// y[t, o] = Σᵢ x[t, i] · W[o, i] + b[o]
//
// W is decoded a block of outputs at a time, once for all tokens. Under bf16 its numbers are rounded to
// bfloat16 first, and y once at the end, bias included (as torch.nn.functional.linear does).
#include <fmt/format.h>

#include <algorithm>

#include "core/system/threads.h"
#include "refimpl/ops/decoded_rows.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"
#include "refimpl/ops/w8a8.h"

namespace assay {
namespace {

constexpr std::size_t kBlockElements = 1 << 16;  // of decoded weight: stays in a core's cache

}  // namespace

Matrix ReferenceOps::run(const LinearCall& call) {
  const Matrix& x = call.x;
  const WeightView& weight = call.weight;
  if (x.columns() != weight.inputs())
    throw Error::input(fmt::format("takes {} inputs and is given {}", weight.inputs(), x.columns()))
        .tensor(*weight.name);
  if (is_w8a8(weight, arithmetic())) return w8a8_linear(*this, x, weight, call.bias);
  const std::size_t inputs = weight.inputs(), outputs = weight.outputs();
  Matrix y = allocate(x.rows(), outputs);  // [tokens, outputs]
  const std::vector<double> b = vector_of(call.bias, arithmetic());
  const bool keep = call.rounding == ResultRounding::float32;
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    const DecodedRows<T> rows(weight, arithmetic());
    const std::size_t block = std::max<std::size_t>(1, kBlockElements / std::max<std::size_t>(1, inputs));
    parallel_for(jobs(), (outputs + block - 1) / block, [&](std::size_t at) {
      const std::size_t first = at * block, count = std::min(block, outputs - first);
      std::vector<T> w;
      std::vector<double> sums(count);
      rows.read(first, count, w);
      for (std::size_t t = 0; t < x.rows(); ++t) {
        dot_rows(x.row<T>(t), w.data(), inputs, count, sums.data());
        for (std::size_t o = 0; o < count; ++o) {
          const double sum = sums[o] + (b.empty() ? 0.0 : b[first + o]);
          y.row<T>(t)[first + o] = static_cast<T>(keep ? sum : arithmetic().round(sum));
        }
      }
    });
  });
  return y;
}

}  // namespace assay
