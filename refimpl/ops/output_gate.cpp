// y = x · act(gate): what leaves attention, a shared expert, a convolution, scaled by what enters.
#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"

namespace assay {

void check_shapes(const OutputGateCall& call) {
  const std::size_t columns = call.x.columns(), gates = call.gate.columns();
  if (call.gate.rows() != call.x.rows() || gates == 0 || columns % gates != 0)
    throw Error::internal(fmt::format("output gate: x [{}, {}] and gate [{}, {}]", call.x.rows(), columns,
                                      call.gate.rows(), gates));
}

Matrix ReferenceOps::run(const OutputGateCall& call) {
  check_shapes(call);
  const std::size_t columns = call.x.columns(), gates = call.gate.columns();
  const std::size_t width = columns / gates;  // under one gate
  Matrix y = allocate(call.x.rows(), columns);
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      const T *x = call.x.row<T>(r), *gate = call.gate.row<T>(r);
      T* out = y.row<T>(r);
      for (std::size_t g = 0; g < gates; ++g) {
        const double factor = arithmetic().stage(gated(static_cast<double>(gate[g]), call.form));
        for (std::size_t c = g * width; c < (g + 1) * width; ++c)
          out[c] = static_cast<T>(arithmetic().round(static_cast<double>(x[c]) * factor));
      }
    }
  });
  return y;
}

}  // namespace assay
