// y[t] = Σₑ w[t, e] · downₑ(act(gateₑ(x[t])) · upₑ(x[t])), e over the token's experts; of experts without gates
// downₑ(act(upₑ(x[t]))).
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/run_expert.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

const WeightView& bias_of(const std::vector<WeightView>& biases, std::size_t expert) {
  static const WeightView kNone;
  return biases.empty() ? kNone : biases.at(expert);
}

// Columns first, first + 2, first + 4 …
Matrix every_second(Ops& ops, const Matrix& x, std::size_t first) {
  Matrix y = ops.allocate(x.rows(), x.columns() / 2);
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      for (std::size_t i = 0; i < y.columns(); ++i) y.row<T>(r)[i] = x.row<T>(r)[2 * i + first];
    }
  });
  return y;
}

// The tokens an expert computes for, and its weight for each.
struct Visit {
  std::vector<std::size_t> tokens;
  std::vector<double> weights;
};
template <class T>
std::vector<Visit> visits(const Routing& routing, std::size_t experts, std::size_t tokens, MoeForm form) {
  std::vector<Visit> result(experts);
  const bool all = form != MoeForm::sparse;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (Visit& visit : result) {
      if (!all) break;
      visit.tokens.push_back(t);
      visit.weights.push_back(0);
    }
    for (std::size_t i = 0; i < routing.top_k; ++i) {
      Visit& visit = result.at(static_cast<std::size_t>(routing.experts[t * routing.top_k + i]));
      if (!all) visit.tokens.push_back(t);
      if (!all) visit.weights.push_back(0);
      visit.weights.back() = routing.weights.row<T>(t)[i];
    }
  }
  return result;
}

}  // namespace

Matrix run_expert(Ops& ops, const Matrix& x, const ExpertWeights& w, std::size_t e) {
  Matrix gate, up;  // [tokens, expert width]
  if (w.gate_up.empty() && w.gate.empty()) {
    up = ops.linear(x, w.up.at(e), bias_of(w.up_bias, e));
    return ops.linear(ops.activation(up, w.form.activation), w.down.at(e), bias_of(w.down_bias, e));
  }
  if (!w.gate_up.empty()) {
    const Matrix both = ops.linear(x, w.gate_up.at(e), bias_of(w.gate_up_bias, e));
    const std::size_t width = both.columns() / 2;
    gate = w.interleaved ? every_second(ops, both, 0) : both.part(0, width);
    up = w.interleaved ? every_second(ops, both, 1) : both.part(width, width);
  } else {
    gate = ops.linear(x, w.gate.at(e), bias_of(w.gate_bias, e));
    up = ops.linear(x, w.up.at(e), bias_of(w.up_bias, e));
  }
  return ops.linear(ops.gated_activation(gate, up, w.form), w.down.at(e),
                    bias_of(w.down_bias, e));  // [tokens, hidden]
}

Matrix ReferenceOps::run(const FusedMoeCall& call) {
  const Matrix& x = call.x;
  const ExpertWeights& experts = call.experts;
  if (call.form == MoeForm::soft && call.routing.top_k != experts.down.size())
    throw Error::internal(
        fmt::format("a soft mixture names {} of {} experts", call.routing.top_k, experts.down.size()));
  std::vector<double> sums(x.rows() * x.columns());  // [tokens, hidden]
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    const std::vector<Visit> all = visits<T>(call.routing, experts.down.size(), x.rows(), call.form);
    for (std::size_t e = 0; e < all.size(); ++e) {
      if (all[e].tokens.empty()) continue;
      const Matrix y = run_expert(*this, gather(x, all[e].tokens), experts, e);
      for (std::size_t i = 0; i < all[e].tokens.size(); ++i) {
        double* sum = &sums[all[e].tokens[i] * x.columns()];
        for (std::size_t c = 0; c < x.columns(); ++c) {
          const double part = arithmetic().stage(static_cast<double>(y.row<T>(i)[c]) * all[e].weights[i]);
          sum[c] = arithmetic().stage(sum[c] + part);
        }
      }
    }
  });
  return upload(sums, x.rows(), x.columns());
}

}  // namespace assay
