#include "kernels/cpu/cpu_ops.h"

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/linear.h"

namespace assay {

Matrix CpuOps::linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                      ResultRounding rounding) {
  if (!is_float32() && !cpu::takes_bf16(weight, arithmetic()))
    return ReferenceOps::linear(x, weight, bias, rounding);
  if (x.columns() != weight.inputs()) throw Error::internal("a matrix that does not fit its input");
  Matrix y = allocate(x.rows(), weight.outputs());
  cpu::linear(x, weight, bias, arithmetic(), y, jobs(), rounding);
  return y;
}

Matrix CpuOps::rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) {
  if (!is_float32()) return ReferenceOps::rms_norm(x, weight, epsilon, form);
  std::vector<float> w(weight.columns);
  decode_rows(weight, 0, 1, w.data());
  if (w.empty() || x.columns() % w.size() != 0)
    throw Error::internal("a norm's weight does not divide its row");
  if (form == NormForm::one_plus_weight) {
    for (float& value : w) value += 1;
  }
  Matrix y = allocate(x.rows(), x.columns());
  cpu::rms_norm(x, w, epsilon, y, jobs());
  return y;
}

void CpuOps::rope(Matrix& x, const RopeCall& call) {
  if (!is_float32()) return ReferenceOps::rope(x, call);
  if (call.cos.rows() != x.rows() || call.offset + 2 * call.cos.columns() > call.head_dim ||
      call.heads * call.head_dim != x.columns())
    throw Error::internal("rotary angles do not fit the heads");
  cpu::rope(x, call, jobs());
}

Matrix CpuOps::attention(const AttentionCall& call) {
  if (!is_float32() && !arithmetic().bfloat16()) return ReferenceOps::attention(call);
  if (call.kv_heads == 0 || call.heads % call.kv_heads != 0 || call.q.columns() != call.heads * call.qk_dim)
    throw Error::internal("queries do not fit their heads");
  Matrix out = allocate(call.q.rows(), call.heads * call.v_dim);
  cpu::attention(call, out, jobs());
  if (arithmetic().bfloat16()) cpu::finish_bf16({}, false, out, jobs());
  return out;
}

Matrix CpuOps::gated(const Matrix& gate, const Matrix& up, const GatedForm& form) {
  if (!is_float32()) return ReferenceOps::gated(gate, up, form);
  if (gate.rows() != up.rows() || gate.columns() != up.columns())
    throw Error::internal("a gate of another shape than what it gates");
  Matrix y = allocate(gate.rows(), gate.columns());
  cpu::gated(gate, up, form, y, jobs());
  return y;
}

Matrix CpuOps::add(const Matrix& a, const Matrix& b) {
  if (!is_float32()) return ReferenceOps::add(a, b);
  if (a.rows() != b.rows() || a.columns() != b.columns())
    throw Error::internal("a sum of matrices of two shapes");
  Matrix y = allocate(a.rows(), a.columns());
  cpu::add(a, b, y, jobs());
  return y;
}

}  // namespace assay
