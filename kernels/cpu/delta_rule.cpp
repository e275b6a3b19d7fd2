#include "kernels/cpu/delta_rule.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/delta_chunks.h"
#include "kernels/cpu/delta_inputs.h"
#include "kernels/cpu/delta_step.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/recurrence.h"

namespace assay::cpu {
namespace {

void run_token_by_token(const DeltaRuleCall& call, const DeltaInputs& in, const SequenceState& sequence,
                        std::size_t head, const Matrix& out) {
  const std::size_t keys = call.key_dim, key_at = head / (call.value_heads / call.key_heads) * keys;
  const std::size_t value_at = head * call.value_dim;
  StatePath path(sequence, head * keys, keys, call.value_dim);
  std::vector<float> kept(keys);
  for (std::size_t i = 0; i < sequence.tokens; ++i) {
    const std::size_t t = sequence.first + i;
    const float* g = &in.decay[t * in.decays + head * in.channels];
    if (in.channels != 1) {
      std::copy_n(g, keys, kept.begin());
      exponentials_of(kept);
    } else {
      kept[0] = *g;
      exponentials_of(std::span(kept).first(1));
      std::fill(kept.begin(), kept.end(), kept[0]);
    }
    delta_step({.state = path.of_token(i),
                .q = &in.q[t * in.keys + key_at],
                .k = &in.k[t * in.keys + key_at],
                .v = call.v.row<float>(t) + value_at,
                .kept = kept.data(),
                .beta = in.beta[t * in.heads + head],
                .keys = keys,
                .values = call.value_dim,
                .out = out.row<float>(t) + value_at});
  }
}

}  // namespace

Matrix delta_rule(Ops& ops, const DeltaRuleCall& call, ScanWay way) {
  const std::vector<double> log = vector_of(call.decay_log, ops.arithmetic());
  const std::vector<double> bias = vector_of(call.decay_bias, ops.arithmetic());
  check_shapes(call, log, bias);
  const DeltaInputs in(call, log, bias, ops.jobs());
  Matrix out = ops.allocate(call.v.rows(), call.value_heads * call.value_dim);
  team_for(ops.jobs(), call.sequences.size() * call.value_heads, [&](std::size_t i) {
    const SequenceState& sequence = call.sequences[i / call.value_heads];
    const std::size_t head = i % call.value_heads;
    if (in_chunks(way, call.form, sequence.tokens, in.channels == 1))
      run_delta_chunks(call, in, sequence, head, out);
    else
      run_token_by_token(call, in, sequence, head, out);
  });
  return out;
}

}  // namespace assay::cpu
