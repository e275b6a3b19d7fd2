#include "kernels/cpu/moe.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/linear_work.h"
#include "kernels/cpu/team.h"

namespace assay::cpu {
namespace {

// An expert that has tokens, and its matrices under way.
struct Group {
  std::size_t expert = 0;
  std::vector<std::size_t> tokens;
  std::vector<float> weights;
  Matrix x, gate, up, y;  // [tokens, hidden], [tokens, width] twice, [tokens, hidden]
};

std::vector<Group> groups_of(const Routing& routing, std::size_t experts, std::size_t tokens, MoeForm form) {
  std::vector<Group> all(experts);
  for (std::size_t e = 0; e < experts; ++e) all[e].expert = e;
  for (std::size_t t = 0; t < tokens; ++t) {
    const bool every = form != MoeForm::sparse;
    for (std::size_t e = 0; every && e < experts; ++e) {
      all[e].tokens.push_back(t);
      all[e].weights.push_back(0);
    }
    for (std::size_t i = 0; i < routing.top_k; ++i) {
      Group& group = all.at(static_cast<std::size_t>(routing.experts[t * routing.top_k + i]));
      if (!every) group.tokens.push_back(t);
      if (!every) group.weights.push_back(0);
      group.weights.back() = routing.weights.row<float>(t)[i];
    }
  }
  std::erase_if(all, [](const Group& group) { return group.tokens.empty(); });
  return all;
}

LinearWork work(Ops& ops, const Matrix& x, const WeightView& weight, const Matrix& y, SumOrder order,
                const LinearWork* beside = nullptr) {
  return {way_for(x.rows(), weight, ops.arithmetic(), order), x, weight, y, ops.jobs(), beside};
}

void multiply_gates_and_ups(Ops& ops, const Matrix& x, const ExpertWeights& w, SumOrder order,
                            std::vector<Group>& groups) {
  std::vector<LinearWork> products;
  for (Group& g : groups) {
    g.x = ops.gather(x, g.tokens);
    const std::size_t n = g.tokens.size();
    if (w.gate_up.empty()) {
      g.gate = ops.allocate(n, w.gate.at(g.expert).rows);
      g.up = ops.allocate(n, w.up.at(g.expert).rows);
      products.push_back(work(ops, g.x, w.gate.at(g.expert), g.gate, order));
      const LinearWork of_gate = products.back();
      products.push_back(work(ops, g.x, w.up.at(g.expert), g.up, order, &of_gate));
      continue;
    }
    const Matrix both = ops.allocate(n, w.gate_up.at(g.expert).rows);
    products.push_back(work(ops, g.x, w.gate_up.at(g.expert), both, order));
    g.gate = both.part(0, both.columns() / 2);
    g.up = both.part(both.columns() / 2, both.columns() / 2);
  }
  run_all(products, ops.jobs());
}

}  // namespace

bool grouped_moe_takes(const ExpertWeights& experts, const Arithmetic& arithmetic) {
  if (!arithmetic.float32() && !arithmetic.bfloat16()) return false;
  if (!experts.gate_bias.empty() || !experts.up_bias.empty() || !experts.gate_up_bias.empty() ||
      !experts.down_bias.empty() || experts.interleaved)
    return false;
  if (experts.gate.empty() && experts.gate_up.empty()) return false;
  const auto plain = [&](const std::vector<WeightView>& weights) {
    return std::all_of(weights.begin(), weights.end(), [&](const WeightView& w) {
      return !w.input_major && (arithmetic.float32() || takes_bf16(w, arithmetic));
    });
  };
  return plain(experts.gate) && plain(experts.up) && plain(experts.gate_up) && plain(experts.down);
}

Matrix grouped_moe(Ops& ops, const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                   MoeForm form, SumOrder order) {
  if (form == MoeForm::soft && routing.top_k != experts.down.size())
    throw Error::internal(
        fmt::format("a soft mixture names {} of {} experts", routing.top_k, experts.down.size()));
  std::vector<Group> groups = groups_of(routing, experts.down.size(), x.rows(), form);
  multiply_gates_and_ups(ops, x, experts, order, groups);
  const bool bf16 = ops.arithmetic().bfloat16();
  team_for(ops.jobs(), groups.size(), [&](std::size_t i) {
    const Group& g = groups[i];
    if (bf16) round_to_bf16(g.gate, 1), round_to_bf16(g.up, 1);
    gated(g.gate, g.up, experts.form, bf16, g.gate, 1);
  });
  std::vector<LinearWork> downs;
  for (Group& g : groups) {
    g.y = ops.allocate(g.tokens.size(), experts.down.at(g.expert).rows);
    downs.push_back(work(ops, g.gate, experts.down.at(g.expert), g.y, order));
  }
  run_all(downs, ops.jobs());
  team_for(bf16 ? ops.jobs() : 1, bf16 ? groups.size() : 0,
           [&](std::size_t i) { round_to_bf16(groups[i].y, 1); });

  struct Visit {
    const float* y;
    double weight;
  };
  std::vector<std::vector<Visit>> visits(x.rows());  // of each token, by the experts' numbers
  for (const Group& g : groups) {
    for (std::size_t i = 0; i < g.tokens.size(); ++i)
      visits[g.tokens[i]].push_back({g.y.row<float>(i), static_cast<double>(g.weights[i])});
  }
  Matrix out = ops.allocate(x.rows(), x.columns());
  team_for(ops.jobs(), x.rows(), [&](std::size_t t) {
    std::vector<double> sums(x.columns());
    for (const Visit& visit : visits[t]) {
      const auto part = [&](std::size_t c) { return static_cast<double>(visit.y[c]) * visit.weight; };
      for (std::size_t c = 0; !bf16 && c < sums.size(); ++c) sums[c] += part(c);
      for (std::size_t c = 0; bf16 && c < sums.size(); ++c)
        sums[c] = ops.arithmetic().stage(sums[c] + ops.arithmetic().stage(part(c)));
    }
    std::copy(sums.begin(), sums.end(), out.row<float>(t));
  });
  return out;
}

}  // namespace assay::cpu
