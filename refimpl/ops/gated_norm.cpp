// y = rms_norm(x) · w · act(gate), or rms_norm(x · act(gate)) · w      (Gated DeltaNet and KDA; Mamba-2)
//
// Under bf16 the gate's activation is not rounded: it is computed in float32 there.
#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

template <class T>
void norm_row(const GatedNormCall& call, const std::vector<double>& w, const Arithmetic& arithmetic,
              const T* x, const T* gate, T* out) {
  const bool staged = call.form == NormForm::weight_last;
  std::vector<double> values(call.group);
  for (std::size_t first = 0; first < call.x.columns(); first += call.group) {
    for (std::size_t i = 0; i < call.group; ++i) {
      values[i] = static_cast<double>(x[first + i]);
      if (call.gate_first) values[i] *= gated(static_cast<double>(gate[first + i]), call.gate_form);
    }
    const double mean_square =
        dot(values.data(), values.data(), call.group) / static_cast<double>(call.group);
    const double factor = 1 / std::sqrt(mean_square + call.epsilon);
    for (std::size_t i = 0; i < call.group; ++i) {
      const std::size_t c = first + i;
      const double weight = w[c % w.size()] + (call.form == NormForm::one_plus_weight ? 1 : 0);
      double y = values[i] * factor;
      y = staged ? arithmetic.stage(arithmetic.stage(y) * weight) : y * weight;
      if (!call.gate_first) y *= gated(static_cast<double>(gate[c]), call.gate_form);
      out[c] = static_cast<T>(arithmetic.round(y));
    }
  }
}

}  // namespace

void check_shapes(const GatedNormCall& call, const std::vector<double>& weight) {
  const std::size_t columns = call.x.columns();
  if (call.gate.rows() != call.x.rows() || call.gate.columns() != columns)
    throw Error::internal(fmt::format("gated norm: x [{}, {}] and gate [{}, {}]", call.x.rows(), columns,
                                      call.gate.rows(), call.gate.columns()));
  if (call.group == 0 || columns % call.group != 0 || weight.empty() || columns % weight.size() != 0)
    throw Error::input("a norm's weight does not divide what it scales: the tensors are not of one model");
}

Matrix ReferenceOps::run(const GatedNormCall& call) {
  const std::vector<double> w = vector_of(call.weight, arithmetic());
  check_shapes(call, w);
  Matrix y = allocate(call.x.rows(), call.x.columns());
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r)
      norm_row<T>(call, w, arithmetic(), call.x.row<T>(r), call.gate.row<T>(r), y.row<T>(r));
  });
  return y;
}

}  // namespace assay
