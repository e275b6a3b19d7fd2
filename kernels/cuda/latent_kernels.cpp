// Absorbed MLA as kernels of the registry: queries into the latent space, attention there, and out of it,
// without leaving the device.
#include "core/numeric/codec.h"
#include "kernels/cuda/attention_arguments.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

// The attention over one shared head that the absorbed form is.
AttentionCall shared_attention(const MlaCall& call) {
  return {.q = {},
          .spans = call.spans,
          .heads = call.heads,
          .kv_heads = 1,
          .qk_dim = call.kv_rank + call.rope_dim,
          .v_dim = call.kv_rank,
          .scale = call.scale};
}

struct LatentPlan {
  AttentionPlan attention;
  LaunchPlan into, out_of;
};
LatentPlan plan_of(const DeviceLimits& limits, const Arithmetic& arithmetic, const MlaCall& call,
                   SplitRule rule) {
  return {plan_latent_attention(limits, shape_of(arithmetic, shared_attention(call)), rule),
          plan_latent_product(limits, call.q.rows(), call.heads, call.nope_dim, call.kv_rank),
          plan_latent_product(limits, call.q.rows(), call.heads, call.kv_rank, call.v_dim)};
}

// Matrices of all heads as the products want them, [heads, inputs, outputs], in the elements of the kernel.
class HeadMatrices {
 public:
  HeadMatrices(const Arithmetic& arithmetic, std::size_t heads, std::size_t inputs, std::size_t outputs)
      : arithmetic_(arithmetic), inputs_(inputs), outputs_(outputs), values_(heads * inputs * outputs) {}

  // `stored` as [inputs, outputs], or turned: [outputs, inputs].
  void set(std::size_t head, const WeightView& stored, bool turned) {
    std::vector<float> decoded(inputs_ * outputs_);
    decode_rows(stored, 0, stored.rows, decoded.data());
    float* to = values_.data() + head * decoded.size();
    for (std::size_t i = 0; i < inputs_; ++i) {
      for (std::size_t o = 0; o < outputs_; ++o)
        to[i * outputs_ + o] = turned ? decoded[o * inputs_ + i] : decoded[i * outputs_ + o];
    }
  }
  const void* stage(Staging& staging) {
    if (!arithmetic_.bfloat16()) return staging.read(values_.data(), values_.size() * sizeof(float));
    codes_.resize(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i)
      codes_[i] = static_cast<std::uint16_t>(encode(kBF16, values_[i], Overflow::special));
    return staging.read(codes_.data(), codes_.size() * sizeof(std::uint16_t));
  }

 private:
  Arithmetic arithmetic_;
  std::size_t inputs_, outputs_;
  std::vector<float> values_;
  std::vector<std::uint16_t> codes_;
};

HeadMatrices key_matrices(const Arithmetic& arithmetic, const MlaCall& call) {
  HeadMatrices m(arithmetic, call.heads, call.nope_dim, call.kv_rank);
  for (std::size_t h = 0; h < call.heads; ++h) {
    if (call.kv_b)
      m.set(h, call.kv_b.row_range(h * (call.nope_dim + call.v_dim), call.nope_dim), false);
    else
      m.set(h, call.k_b.row_range(h * call.kv_rank, call.kv_rank), true);
  }
  return m;
}

HeadMatrices value_matrices(const Arithmetic& arithmetic, const MlaCall& call) {
  HeadMatrices m(arithmetic, call.heads, call.kv_rank, call.v_dim);
  for (std::size_t h = 0; h < call.heads; ++h) {
    if (call.kv_b)
      m.set(h, call.kv_b.row_range(h * (call.nope_dim + call.v_dim) + call.nope_dim, call.v_dim), true);
    else
      m.set(h, call.v_b.row_range(h * call.v_dim, call.v_dim), true);
  }
  return m;
}

std::uint32_t narrow(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

class LatentRun {
 public:
  LatentRun(Machine& machine, Ops& ops, const MlaCall& call, const LatentPlan& plan,
            const LatentLaunchers& launchers, Staging& staging)
      : call_(call),
        plan_(plan),
        launchers_(launchers),
        staging_(staging),
        arithmetic_(ops.arithmetic()),
        bytes_(element_bytes(arithmetic_)),
        w_k_(key_matrices(arithmetic_, call)),
        w_v_(value_matrices(arithmetic_, call)),
        attention_(arithmetic_, shared_attention(call), plan.attention, machine, staging,
                   launchers.attention.pack, true) {}

  void run(const Matrix& y) {
    AttentionArgs& a = attention_.args;
    a.q = into_latents();
    const std::size_t tokens = call_.q.rows();
    a.out = static_cast<float*>(staging_.scratch(tokens * call_.heads * call_.kv_rank * sizeof(float)));
    a.out_stride = call_.heads * call_.kv_rank;
    launchers_.attention.tiles(plan_.attention, a, bytes_, staging_.stream());
    if (!plan_.attention.merges.empty()) launchers_.attention.merge(plan_.attention, a, staging_.stream());
    out_of_latents(y);
    staging_.finish();
  }

 private:
  const void* into_latents() {
    AttentionArgs& a = attention_.args;
    a.q_stride = call_.heads * a.head_stride;
    void* latent = staging_.scratch(call_.q.rows() * a.q_stride * bytes_);
    launchers_.into(plan_.into,
                    {.x = staging_.in(call_.q),
                     .w = w_k_.stage(staging_),
                     .y = latent,
                     .x_stride = call_.q.stride(),
                     .x_head = call_.nope_dim + call_.rope_dim,
                     .y_stride = a.q_stride,
                     .y_head = a.head_stride,
                     .tokens = narrow(call_.q.rows()),
                     .inputs = narrow(call_.nope_dim),
                     .outputs = narrow(call_.kv_rank),
                     .x_tail = narrow(call_.rope_dim),
                     .y_tail = narrow(a.head_stride - call_.kv_rank),
                     .round = arithmetic_.bfloat16()},
                    bytes_, staging_.stream());
    return latent;
  }

  void out_of_latents(const Matrix& y) {
    const AttentionArgs& a = attention_.args;
    launchers_.out_of(plan_.out_of,
                      {.x = a.out,
                       .w = w_v_.stage(staging_),
                       .y = staging_.out(y),
                       .x_stride = a.out_stride,
                       .x_head = call_.kv_rank,
                       .y_stride = y.stride(),
                       .y_head = call_.v_dim,
                       .tokens = narrow(call_.q.rows()),
                       .inputs = narrow(call_.kv_rank),
                       .outputs = narrow(call_.v_dim),
                       .round = arithmetic_.bfloat16()},
                      bytes_, staging_.stream());
  }

  const MlaCall& call_;
  const LatentPlan& plan_;
  const LatentLaunchers& launchers_;
  Staging& staging_;
  Arithmetic arithmetic_;
  unsigned bytes_;
  HeadMatrices w_k_, w_v_;
  AttentionArguments attention_;
};

bool is_sound(const MlaCall& call) {
  if (call.form != MlaForm::absorbed || call.heads == 0 || call.nope_dim == 0 || call.v_dim == 0)
    return false;
  if (call.q.empty() || call.q.columns() != call.heads * (call.nope_dim + call.rope_dim)) return false;
  AttentionCall shared = shared_attention(call);
  shared.q = call.q;
  for (AttentionSpan& span : shared.spans) span.value_rows = span.key_rows;
  return are_sound_spans(shared);
}

std::vector<LaunchPlan> plans_of(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                 const MlaCall& call, SplitRule rule) {
  if (arithmetic.storage() != Real::f32 || !is_sound(call)) return {};
  LatentPlan plan = plan_of(limits, arithmetic, call, rule);
  std::vector<LaunchPlan> plans = {std::move(plan.into), std::move(plan.attention.tiles)};
  if (!plan.attention.merges.empty()) plans.push_back(std::move(plan.attention.merge));
  plans.push_back(std::move(plan.out_of));
  return plans;
}

Matrix run_latent(Machine& machine, Ops& ops, const MlaCall& call, const LatentLaunchers& launchers,
                  SplitRule rule) {
  Matrix y = ops.allocate(call.q.rows(), call.heads * call.v_dim);
  const LatentPlan plan = plan_of(machine.limits(), ops.arithmetic(), call, rule);
  if (plan.attention.work.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  LatentRun(machine, ops, call, plan, launchers, *staging).run(y);
  return y;
}

}  // namespace

void add_latent_kernels(Registry& registry, Machine& machine, const LatentLaunchers& launchers) {
  const auto add = [&](std::string name, std::string about, SplitRule rule, Promises promises) {
    Kernel<MlaCall> kernel = cuda_kernel<MlaCall>(
        machine, std::move(name), std::move(about),
        [rule](const DeviceLimits& limits, const Arithmetic& arithmetic, const MlaCall& call) {
          return plans_of(limits, arithmetic, call, rule);
        },
        [launchers, rule](Machine& m, Ops& ops, const MlaCall& call) {
          return run_latent(m, ops, call, launchers, rule);
        });
    kernel.promises = promises;
    kernel.accumulator_roundoff = kTensorRoundoff;
    registry.add(std::move(kernel));
  };
  add("cuda.latent_fixed", "a cached row read once for all heads, keys cut at multiples of 256",
      SplitRule::fixed, {});
  add("cuda.latent", "the same, keys cut into what fills a device", SplitRule::by_shape,
      {.batch_invariant = false, .chunk_invariant = false});
}

}  // namespace assay::cuda
