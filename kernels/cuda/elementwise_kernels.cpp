// rope, activation, gated, quantize and dequantize as kernels of the registry.
#include <optional>

#include "core/system/error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

using Plans = std::vector<LaunchPlan>;

Curve curve_of(Activation kind) {
  switch (kind) {
    case Activation::silu: return Curve::silu;
    case Activation::gelu: return Curve::gelu;
    case Activation::gelu_tanh: return Curve::gelu_tanh;
    case Activation::relu: return Curve::relu;
    case Activation::gpt_oss: return Curve::gpt_oss;
    default: break;  // has_curve
  }
  return Curve::silu;
}
bool has_curve(Activation kind) {
  return kind <= Activation::gpt_oss;
}

// --- rope

ElementwiseShape pairs_of(const RotaryCall& call) {
  return {.rows = call.x.rows(), .columns = call.angles.heads * call.angles.cos.columns()};
}

Plans plans_of_rope(const DeviceLimits& limits, const Arithmetic& arithmetic, const RotaryCall& call) {
  const RopeCall& r = call.angles;
  const bool fits = r.cos.rows() == call.x.rows() && r.offset + 2 * r.cos.columns() <= r.head_dim &&
                    r.heads * r.head_dim == call.x.columns();
  if (arithmetic.storage() != Real::f32 || !fits) return {};
  return {plan_rope(limits, pairs_of(call))};
}

Matrix run_rope(Machine& machine, Ops& ops, const RotaryCall& call, const ElementwiseLaunchers& launchers) {
  Matrix x = call.x;
  const ElementwiseShape shape = pairs_of(call);
  if (shape.rows == 0 || shape.columns == 0) return x;
  const RopeCall& r = call.angles;
  const std::unique_ptr<Staging> staging = machine.stage();
  const RopeArguments arguments = {
      .x = staging->out(x),
      .cos = staging->in(r.cos),
      .sin = staging->in(r.sin),
      .x_stride = x.stride(),
      .cos_stride = r.cos.stride(),
      .sin_stride = r.sin.stride(),
      .tokens = narrow(shape.rows),
      .heads = narrow(r.heads),
      .head_dim = narrow(r.head_dim),
      .offset = narrow(r.offset),
      .pairs = narrow(r.cos.columns()),
      .halves = r.layout == RopeLayout::half_split,
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.rope(plan_rope(machine.limits(), shape), arguments, staging->stream());
  staging->finish();
  return x;
}

// --- activation, gated

Plans plans_of_activation(const DeviceLimits& limits, const Arithmetic& arithmetic, Activation kind,
                          const Matrix& x) {
  if (arithmetic.storage() != Real::f32 || !has_curve(kind)) return {};
  return {plan_activation(limits, {.rows = x.rows(), .columns = x.columns()})};
}

struct Gate {
  const Matrix& x;
  const Matrix* up;
  Activation kind;
  double limit;
};
Matrix run_activation(Machine& machine, Ops& ops, const Gate& gate, const ElementwiseLaunchers& launchers) {
  Matrix y = ops.allocate(gate.x.rows(), gate.x.columns());
  if (y.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  const ActivationArguments arguments = {
      .x = staging->in(gate.x),
      .up = gate.up == nullptr ? nullptr : staging->in(*gate.up),
      .y = staging->out(y),
      .x_stride = gate.x.stride(),
      .up_stride = gate.up == nullptr ? 0 : gate.up->stride(),
      .y_stride = y.stride(),
      .rows = narrow(y.rows()),
      .columns = narrow(y.columns()),
      .curve = curve_of(gate.kind),
      .limit = static_cast<float>(gate.limit),
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.activation(plan_activation(machine.limits(), {.rows = y.rows(), .columns = y.columns()}),
                       arguments, staging->stream());
  staging->finish();
  return y;
}

// --- quantize, dequantize

std::optional<Code> code_of(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3: return Code::e4m3;
    case ElementType::F8_E5M2: return Code::e5m2;
    case ElementType::I8: return Code::i8;
    default: return std::nullopt;
  }
}

struct Blocks {
  std::size_t down, across, per_row, count;
  Blocks(const QuantizeRule& rule, std::size_t rows, std::size_t columns)
      : down(rule.block_rows == 0 ? std::max<std::size_t>(1, rows) : rule.block_rows),
        across(rule.block_columns == 0 ? std::max<std::size_t>(1, columns) : rule.block_columns),
        per_row(blocks_for(columns, across)),
        count(blocks_for(rows, down) * per_row) {}
  QuantizeShape shape() const { return {.blocks = count, .block_elements = down * across}; }
};

Plans plans_of_quantize(const DeviceLimits& limits, const Arithmetic& arithmetic, const QuantizeCall& call) {
  if (arithmetic.storage() != Real::f32 || !code_of(call.rule.codes)) return {};
  return {plan_quantize(limits, Blocks(call.rule, call.x.rows(), call.x.columns()).shape())};
}

QuantizedMatrix run_quantize(Machine& machine, const QuantizeCall& call, const QuantizeLaunchers& launchers) {
  const Matrix& x = call.x;
  const Blocks blocks(call.rule, x.rows(), x.columns());
  QuantizedMatrix q = {call.rule, x.rows(), x.columns(), {}, {}};
  q.codes.resize(x.rows() * x.columns());
  q.scales.resize(blocks.count);
  if (x.empty()) return q;
  std::uint32_t unquantizable = 0;
  const std::unique_ptr<Staging> staging = machine.stage();
  const QuantizeArguments arguments = {
      .x = staging->in(x),
      .x_stride = x.stride(),
      .rows = narrow(x.rows()),
      .columns = narrow(x.columns()),
      .block_rows = narrow(blocks.down),
      .block_columns = narrow(blocks.across),
      .scale_columns = narrow(blocks.per_row),
      .blocks = blocks.count,
      .codes = static_cast<std::uint8_t*>(staging->write(q.codes.data(), q.codes.size())),
      .scales = static_cast<float*>(staging->write(q.scales.data(), q.scales.size() * sizeof(float))),
      .unquantizable = static_cast<std::uint32_t*>(staging->write(&unquantizable, sizeof unquantizable)),
      .code = *code_of(call.rule.codes),
      .power_of_two = call.rule.power_of_two,
  };
  launchers.quantize(plan_quantize(machine.limits(), blocks.shape()), arguments, staging->stream());
  staging->finish();
  if (unquantizable != 0)
    throw Error::input("activations became NaN or infinite: 8 bits cannot hold them")
        .remedy("look where with --dump, in f32");
  return q;
}

Plans plans_of_dequantize(const DeviceLimits& limits, const Arithmetic& arithmetic,
                          const DequantizeCall& call) {
  if (arithmetic.storage() != Real::f32 || !code_of(call.x.rule.codes)) return {};
  return {plan_dequantize(limits, {.rows = call.x.rows, .columns = call.x.columns})};
}

Matrix run_dequantize(Machine& machine, Ops& ops, const DequantizeCall& call,
                      const ElementwiseLaunchers& launchers) {
  const QuantizedMatrix& q = call.x;
  Matrix y = ops.allocate(q.rows, q.columns);
  if (y.empty()) return y;
  const Blocks blocks(q.rule, q.rows, q.columns);
  const std::unique_ptr<Staging> staging = machine.stage();
  const DequantizeArguments arguments = {
      .codes = static_cast<const std::uint8_t*>(staging->read(q.codes.data(), q.codes.size())),
      .scales = static_cast<const float*>(staging->read(q.scales.data(), q.scales.size() * sizeof(float))),
      .y = staging->out(y),
      .y_stride = y.stride(),
      .rows = narrow(q.rows),
      .columns = narrow(q.columns),
      .block_rows = narrow(blocks.down),
      .block_columns = narrow(blocks.across),
      .scale_columns = narrow(blocks.per_row),
      .code = *code_of(q.rule.codes),
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.dequantize(plan_dequantize(machine.limits(), {.rows = q.rows, .columns = q.columns}), arguments,
                       staging->stream());
  staging->finish();
  return y;
}

}  // namespace

void add_elementwise_kernels(Registry& registry, Machine& machine, const ElementwiseLaunchers& launchers) {
  registry.add(cuda_kernel<RotaryCall>(machine, "cuda.fused", "a thread rotates a pair",
                                       element_edges("pairs"), plans_of_rope,
                                       [launchers](Machine& m, Ops& ops, const RotaryCall& call) {
                                         return run_rope(m, ops, call, launchers);
                                       }));
  registry.add(cuda_kernel<ActivationCall>(
      machine, "cuda.fused", "a thread an element", element_edges("n"),
      [](const DeviceLimits& limits, const Arithmetic& arithmetic, const ActivationCall& call) {
        return call.kind == Activation::gpt_oss ? Plans()
                                                : plans_of_activation(limits, arithmetic, call.kind, call.x);
      },
      [launchers](Machine& m, Ops& ops, const ActivationCall& call) {
        return run_activation(m, ops, {call.x, nullptr, call.kind, 0}, launchers);
      }));
  registry.add(cuda_kernel<GatedActivationCall>(
      machine, "cuda.fused", "activation and product in one pass", element_edges("n"),
      [](const DeviceLimits& limits, const Arithmetic& arithmetic, const GatedActivationCall& call) {
        return plans_of_activation(limits, arithmetic, call.form.activation, call.gate);
      },
      [launchers](Machine& m, Ops& ops, const GatedActivationCall& call) {
        return run_activation(m, ops, {call.gate, &call.up, call.form.activation, call.form.limit},
                              launchers);
      }));
  registry.add(cuda_kernel<DequantizeCall>(machine, "cuda.fused", "a thread an element", element_edges("n"),
                                           plans_of_dequantize,
                                           [launchers](Machine& m, Ops& ops, const DequantizeCall& call) {
                                             return run_dequantize(m, ops, call, launchers);
                                           }));
}

void add_quantize_kernels(Registry& registry, Machine& machine, const QuantizeLaunchers& launchers) {
  registry.add(cuda_kernel<QuantizeCall>(
      machine, "cuda.fused", "largest magnitude, scale and codes of a block in one kernel", quantize_edges(),
      plans_of_quantize,
      [launchers](Machine& m, Ops&, const QuantizeCall& call) { return run_quantize(m, call, launchers); }));
}

}  // namespace assay::cuda
