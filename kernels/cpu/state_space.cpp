#include "kernels/cpu/state_space.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/space_chunks.h"
#include "kernels/cpu/space_step.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/recurrence.h"

namespace assay::cpu {
namespace {

std::vector<float> sizes_of(const StateSpaceCall& call, const std::vector<double>& bias, int jobs) {
  const std::size_t tokens = call.step.rows();
  const std::vector<float> shifts(bias.begin(), bias.end());
  std::vector<float> sizes(tokens * call.heads);
  const std::size_t step = std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, call.heads));
  team_for(jobs, (tokens + step - 1) / step, [&](std::size_t piece) {
    for (std::size_t t = piece * step; t < std::min(tokens, (piece + 1) * step); ++t)
      step_sizes({call.step.row<float>(t), shifts.data(), call.heads, static_cast<float>(call.least_step),
                  static_cast<float>(call.most_step), &sizes[t * call.heads]});
  });
  return sizes;
}

// `rates`: exp(A_log), one or one a column of the state.
void run_space_by_token(const SpaceHead32& head, std::span<const float> rates, const Matrix& out) {
  const StateSpaceCall& call = head.call;
  const std::size_t group = head.head / (call.heads / call.groups) * call.state;
  StatePath path(head.sequence, head.head * call.head_dim, call.head_dim, call.state);
  std::vector<float> kept(call.state);
  for (std::size_t i = 0; i < head.sequence.tokens; ++i) {
    const std::size_t t = head.sequence.first + i;
    const float size = head.sizes[t * call.heads + head.head];
    for (std::size_t n = 0; n < rates.size(); ++n) kept[n] = -rates[n] * size;
    exponentials_of(std::span(kept).first(rates.size()));
    if (rates.size() == 1) std::fill(kept.begin(), kept.end(), kept[0]);
    space_step({.state = path.of_token(i),
                .x = call.x.row<float>(t) + head.head * call.head_dim,
                .b = call.b.row<float>(t) + group,
                .c = call.c.row<float>(t) + group,
                .kept = kept.data(),
                .size = size,
                .skip = head.skip,
                .rows = call.head_dim,
                .columns = call.state,
                .out = out.row<float>(t) + head.head * call.head_dim});
  }
}

}  // namespace

Matrix state_space(Ops& ops, const StateSpaceCall& call, ScanWay way) {
  const std::vector<double> log = vector_of(call.decay_log, ops.arithmetic());
  const std::vector<double> skip = vector_of(call.skip, ops.arithmetic());
  const std::vector<double> bias = vector_of(call.step_bias, ops.arithmetic());
  check_shapes(call, log, skip, bias);
  std::vector<float> rates;
  for (const double x : log) rates.push_back(static_cast<float>(std::exp(x)));
  const std::size_t each = rates.size() / call.heads;
  const std::vector<float> sizes = sizes_of(call, bias, ops.jobs());
  Matrix out = ops.allocate(call.x.rows(), call.x.columns());
  for (const SequenceState& sequence : call.sequences) {
    std::optional<ChunkProducts> products;
    if (each == 1 && in_chunks(way, call.form, sequence.tokens, true))
      products.emplace(call, sequence, ops.jobs());
    team_for(ops.jobs(), call.heads, [&](std::size_t h) {
      const SpaceHead32 head = {call, sequence, sizes, h, rates[h * each], static_cast<float>(skip[h])};
      if (products)
        run_space_chunks(head, *products, out);
      else
        run_space_by_token(head, std::span(rates).subspan(h * each, each), out);
    });
  }
  return out;
}

}  // namespace assay::cpu
