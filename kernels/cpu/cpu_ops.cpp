#include "kernels/cpu/cpu_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/linear.h"
#include "refimpl/ops/support.h"

namespace assay {

namespace {

void check_inputs(const LinearCall& call) {
  if (call.x.columns() != call.weight.inputs())
    throw Error::internal(
        fmt::format("linear: takes {} inputs and is given {}", call.weight.inputs(), call.x.columns()));
}

}  // namespace

Matrix CpuOps::run(const LinearCall& call) {
  if (!arithmetic().float32() && !cpu::takes_bf16(call.weight, arithmetic())) return ReferenceOps::run(call);
  check_inputs(call);
  Matrix y = allocate(call.x.rows(), call.weight.outputs());
  cpu::linear(call.x, call.weight, call.bias, arithmetic(), y, jobs(), call.rounding, order_);
  return y;
}

std::vector<Matrix> CpuOps::run_together(std::span<const LinearCall> calls) {
  const bool taken = std::all_of(calls.begin(), calls.end(), [&](const LinearCall& call) {
    return !call.weight.input_major && (arithmetic().float32() || cpu::takes_bf16(call.weight, arithmetic()));
  });
  if (!taken) return ReferenceOps::run_together(calls);
  std::vector<cpu::LinearProduct> products;
  for (const LinearCall& call : calls) {
    check_inputs(call);
    products.push_back(
        {call.weight, call.bias, allocate(call.x.rows(), call.weight.outputs()), call.rounding});
  }
  if (!calls.empty()) cpu::linear_together(calls.front().x, products, arithmetic(), jobs(), order_);
  std::vector<Matrix> made;
  for (const cpu::LinearProduct& product : products) made.push_back(product.y);
  return made;
}

Matrix CpuOps::run(const RmsNormCall& call) {
  if (!is_narrow()) return ReferenceOps::run(call);
  std::vector<float> w(call.weight.columns);
  decode_rows(call.weight, 0, 1, w.data());
  if (bf16()) cpu::round_to_bf16(w);
  if (w.empty() || call.x.columns() % w.size() != 0)
    throw Error::internal(fmt::format("rms_norm: {} weights for rows of {}", w.size(), call.x.columns()));
  if (call.form == NormForm::one_plus_weight) {
    for (float& value : w) value += 1;
  }
  Matrix y = allocate(call.x.rows(), call.x.columns());
  const bool inner = call.form == NormForm::weight_last;
  cpu::rms_norm(call.x, {w, call.epsilon, bf16(), inner}, y, jobs());
  return y;
}

Matrix CpuOps::run(const RotaryCall& call) {
  if (!is_narrow()) return ReferenceOps::run(call);
  check_angles(call);
  Matrix x = call.x;
  cpu::rope(x, call.angles, bf16(), jobs());
  return x;
}

Matrix CpuOps::run(const AttentionCall& call) {
  if (!is_narrow() || !call.slopes.empty()) return ReferenceOps::run(call);
  check_heads(call);
  Matrix out = allocate(call.q.rows(), call.heads * call.v_dim);
  order_ == cpu::SumOrder::steady ? cpu::steady_attention(call, out, jobs())
                                  : cpu::attention(call, out, jobs());
  if (bf16()) cpu::round_to_bf16(out, jobs());
  return out;
}

Matrix CpuOps::run(const GatedActivationCall& call) {
  if (!is_narrow()) return ReferenceOps::run(call);
  if (call.gate.rows() != call.up.rows() || call.gate.columns() != call.up.columns())
    throw Error::internal(fmt::format("gated_activation: a gate [{}, {}] for [{}, {}]", call.gate.rows(),
                                      call.gate.columns(), call.up.rows(), call.up.columns()));
  Matrix y = allocate(call.gate.rows(), call.gate.columns());
  cpu::gated(call.gate, call.up, call.form, bf16(), y, jobs());
  return y;
}

Matrix CpuOps::add(const Matrix& a, const Matrix& b) {
  if (!is_narrow()) return ReferenceOps::add(a, b);
  if (a.rows() != b.rows() || a.columns() != b.columns())
    throw Error::internal(
        fmt::format("add: [{}, {}] and [{}, {}]", a.rows(), a.columns(), b.rows(), b.columns()));
  Matrix y = allocate(a.rows(), a.columns());
  cpu::add(a, b, bf16(), y, jobs());
  return y;
}

}  // namespace assay
