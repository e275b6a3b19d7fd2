// fused_moe as kernels of the registry: the experts' products in one launch each.
//
// Rows of x are gathered expert by expert; gate and up are products of all experts' rows at once, then the
// gate, the product with down, and a token's weighted sum in the order of its experts' numbers. Routing lies
// in ordinary memory, so that the host knows which rows go where.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/gemm_operands.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

// The rows of all experts on end, and where a token's are among them.
struct Visits {
  std::vector<std::size_t> rows_of_expert;
  std::vector<std::int32_t> token_of_row;
  std::size_t per_token = 0;
  std::vector<std::int32_t> rows_of_token;  // [tokens, per_token], by expert's number
  std::vector<float> weights;               // likewise
};

struct Visit {
  std::size_t expert, token;
  float weight;
};

std::vector<Visit> visits_in_order(const FusedMoeCall& call) {
  const std::size_t tokens = call.x.rows(), experts = call.experts.down.size(), top = call.routing.top_k;
  std::vector<Visit> visits;
  const bool sparse = call.form == MoeForm::sparse;
  if (!sparse) {
    for (std::size_t e = 0; e < experts; ++e)
      for (std::size_t t = 0; t < tokens; ++t) visits.push_back({e, t, 0.0F});
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < top; ++i) {
      const auto expert = static_cast<std::size_t>(call.routing.experts[t * top + i]);
      if (expert >= experts)
        throw Error::internal(fmt::format("a routing names expert {} of {}", expert, experts));
      const float weight = call.routing.weights.row<float>(t)[i];
      if (sparse)
        visits.push_back({expert, t, weight});
      else
        visits[expert * tokens + t].weight = weight;
    }
  }
  std::stable_sort(visits.begin(), visits.end(),
                   [](const Visit& a, const Visit& b) { return a.expert < b.expert; });
  return visits;
}

Visits visits_of(const FusedMoeCall& call) {
  const std::vector<Visit> order = visits_in_order(call);
  const std::size_t tokens = call.x.rows();
  Visits visits;
  visits.per_token = order.size() / tokens;
  visits.rows_of_expert.resize(call.experts.down.size());
  visits.rows_of_token.resize(order.size());
  visits.weights.resize(order.size());
  std::vector<std::size_t> seen(tokens);
  for (std::size_t row = 0; row < order.size(); ++row) {
    const Visit& visit = order[row];
    ++visits.rows_of_expert[visit.expert];
    visits.token_of_row.push_back(static_cast<std::int32_t>(visit.token));
    const std::size_t at = visit.token * visits.per_token + seen[visit.token]++;
    visits.rows_of_token[at] = static_cast<std::int32_t>(row);
    visits.weights[at] = visit.weight;
  }
  return visits;
}

// The matrices of one of the products, one an expert, and their biases.
struct Stack {
  const std::vector<WeightView>& weights;
  const std::vector<WeightView>& biases;
};

std::optional<Product> product_of_all(const std::vector<WeightView>& weights, const Arithmetic& arithmetic) {
  if (weights.empty() || !same_form(weights)) return std::nullopt;
  return product_of(weights.front(), arithmetic);
}

class Mixture {
 public:
  Mixture(Ops& ops, const FusedMoeCall& call, Machine& machine, const GemmLaunchers& launchers,
          TensorUnit unit)
      : call_(call),
        arithmetic_(ops.arithmetic()),
        operations_(machine, launchers),
        unit_(unit),
        visits_(visits_of(call)) {}

  void run(const Matrix& y) {
    const ExpertWeights& w = call_.experts;
    const std::size_t rows = visits_.token_of_row.size(), width = w.down.front().columns;
    const DeviceRows x = {operations_.staging().in(call_.x), rows, call_.x.columns(), call_.x.stride(),
                          operations_.upload(visits_.token_of_row)};
    float* const both = operations_.scratch<float>(rows * 2 * width);  // [rows, gate | up]
    if (w.gate_up.empty()) {
      multiply(x, {w.gate, w.gate_bias}, both, 2 * width);
      multiply(x, {w.up, w.up_bias}, both + width, 2 * width);
    } else {
      multiply(x, {w.gate_up, w.gate_up_bias}, both, 2 * width);
    }
    float* const hidden = operations_.scratch<float>(rows * width);
    gate(both, hidden, rows, width);
    float* const results = operations_.scratch<float>(rows * call_.x.columns());
    multiply({hidden, rows, width, width, nullptr}, {w.down, w.down_bias}, results, call_.x.columns());
    combine(results, y);
    operations_.finish();
  }

 private:
  void multiply(const DeviceRows& x, const Stack& stack, float* y, std::size_t y_pitch) {
    const WeightView& first = stack.weights.front();
    const Product product = product_of(first, arithmetic_).value();
    const GemmShape& shape = product.shape;
    const GemmPlan plan = plan_gemm(unit_, operations_.limits(), shape, visits_.rows_of_expert);
    require_fits(plan.launch);
    const DeviceX of_x = operations_.for_gemm(x, shape.math);
    std::vector<GemmWeight> weights;
    std::vector<std::int32_t> first_rows = {0}, first_tiles = {0};
    DeviceW w;
    for (std::size_t e = 0; e < stack.weights.size(); ++e) {
      const std::size_t rows = visits_.rows_of_expert[e];
      first_rows.push_back(first_rows.back() + static_cast<std::int32_t>(rows));
      first_tiles.push_back(first_tiles.back() + static_cast<std::int32_t>(blocks_for(rows, plan.tile_rows)));
      // What nobody is sent to need not come to the device.
      if (rows != 0)
        w = operations_.weight(stack.weights[e], product,
                               stack.biases.empty() ? WeightView() : stack.biases[e], arithmetic_);
      weights.push_back(rows == 0 ? GemmWeight() : w.weight);
    }
    GemmArgs args = gemm_args(of_x, w, shape, plan);
    args.rows = first_rows.back();
    args.groups = static_cast<std::int32_t>(weights.size());
    args.maps = operations_.maps(args, weights, shape, plan);
    args.weights = operations_.upload(std::move(weights));
    args.group_rows = operations_.upload(std::move(first_rows));
    args.group_tiles = operations_.upload(std::move(first_tiles));
    args.y = y;
    args.y_pitch = static_cast<std::int64_t>(y_pitch);
    args.finish = finish_of(shape.math, arithmetic_, ResultRounding::as_arithmetic);
    launch_gemm(unit_, operations_.launchers(), plan, shape, args, operations_.stream());
  }

  void gate(const float* both, float* hidden, std::size_t rows, std::size_t width) {
    const bool interleaved = !call_.experts.gate_up.empty() && call_.experts.interleaved;
    const ActivationArguments args = {.x = both,
                                      .up = both + (interleaved ? 1 : width),
                                      .y = hidden,
                                      .x_stride = 2 * width,
                                      .up_stride = 2 * width,
                                      .y_stride = width,
                                      .rows = static_cast<std::uint32_t>(rows),
                                      .columns = static_cast<std::uint32_t>(width),
                                      .step = interleaved ? 2u : 1u,
                                      .curve = static_cast<Curve>(call_.experts.form.activation),
                                      .limit = static_cast<float>(call_.experts.form.limit),
                                      .bfloat16 = arithmetic_.bfloat16()};
    operations_.launchers().activation(plan_activation(operations_.limits(), {rows, width}), args,
                                       operations_.stream());
  }

  void combine(const float* results, const Matrix& y) {
    const CombineArgs args = {.x = results,
                              .weights = operations_.upload(visits_.weights),
                              .rows_of = operations_.upload(visits_.rows_of_token),
                              .y = operations_.staging().out(y),
                              .x_pitch = static_cast<std::int64_t>(y.columns()),
                              .y_pitch = static_cast<std::int64_t>(y.stride()),
                              .tokens = static_cast<std::int32_t>(y.rows()),
                              .visits = static_cast<std::int32_t>(visits_.per_token),
                              .columns = static_cast<std::int32_t>(y.columns()),
                              .bfloat16 = arithmetic_.bfloat16()};
    operations_.launchers().combine(plan_elements(operations_.limits(), "combine", y.rows(), y.columns()),
                                    args, operations_.stream());
  }

  const FusedMoeCall& call_;
  const Arithmetic& arithmetic_;
  Operations operations_;
  TensorUnit unit_;
  Visits visits_;
};

// Every expert is planned for as if all tokens came to it: which do is known when they have.
std::vector<LaunchPlan> plans_of_moe(const GemmKind& kind, const DeviceLimits& limits,
                                     const Arithmetic& arithmetic, const FusedMoeCall& call) {
  const ExpertWeights& w = call.experts;
  if (call.routing.top_k == 0 || w.form.activation > Activation::gpt_oss) return {};
  if (w.gate.empty() && w.gate_up.empty()) return {};  // experts without gates are the reference's
  const std::vector<std::size_t> rows(w.down.size(), call.x.rows());
  std::vector<LaunchPlan> plans;
  for (const std::vector<WeightView>* weights : {&w.gate, &w.up, &w.gate_up, &w.down}) {
    if (weights->empty()) continue;
    const auto product = product_of_all(*weights, arithmetic);
    if (!product || !kind.computes(*product, limits, rows)) return {};
    plans.push_back(plan_gemm(kind.unit, limits, product->shape, rows).launch);
  }
  return plans;
}

// Rows of x that an expert gets, in tiles of their own.
Edges expert_edges() {
  return {{.of = "tokens", .from = 65}, {.of = "tokens", .from = 129}};
}

}  // namespace

void add_moe_kernels(Registry& registry, Machine& machine, const GemmLaunchers& launchers) {
  for (const GemmKind& kind : gemm_kinds()) {
    Kernel<FusedMoeCall> kernel = cuda_kernel<FusedMoeCall>(
        machine, "cuda.grouped_" + kind.name, "all experts in one launch: " + kind.about, expert_edges(),
        [kind](const DeviceLimits& limits, const Arithmetic& arithmetic, const FusedMoeCall& call) {
          return plans_of_moe(kind, limits, arithmetic, call);
        },
        [launchers, unit = kind.unit](Machine& m, Ops& ops, const FusedMoeCall& call) {
          Matrix y = ops.allocate(call.x.rows(), call.x.columns());
          if (!y.empty()) Mixture(ops, call, m, launchers, unit).run(y);
          return y;
        });
    kernel.roundoffs = {.accumulator = kind.roundoff, .promoted = kind.promotion};
    registry.add(std::move(kernel));
  }
}

}  // namespace assay::cuda
