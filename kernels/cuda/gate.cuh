// moe_gate: scores, choice of groups, choice of experts and weights of a token in one warp.
//
// A token's numbers are few (256 experts: 8 a lane) and choices hang on their order, so they are computed in
// double, as the reference has them: a large logit leaves others at 1e-60, which float32 would make equal.
// The largest is found anew for each choice: ceil(experts / 32) comparisons a lane and five exchanges.
#pragma once

#include "kernels/cuda/gate.h"
#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

struct Candidate {
  double value;
  int index;  // -1: none
};
// The larger; of equals the earlier; NaN only where there is nothing else.
ASSAY_DEVICE bool goes_before(const Candidate& a, const Candidate& b) {
  if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan || b_nan) return a_nan == b_nan ? a.index < b.index : b_nan;
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// The place of the best of values[0 … count) that is not yet taken, in all lanes; marks it as taken.
ASSAY_DEVICE int take_best(const double* values, std::uint8_t* taken, int count) {
  Candidate best = {0, -1};
  for (int i = static_cast<int>(lane_id()); i < count; i += 32) {
    const Candidate here = {values[i], taken[i] != 0 ? -1 : i};
    if (goes_before(here, best)) best = here;
  }
  ASSAY_UNROLL
  for (unsigned mask = 16; mask != 0; mask /= 2) {
    const Candidate other = {shuffle_xor(best.value, mask), shuffle_xor(best.index, mask)};
    if (goes_before(other, best)) best = other;
  }
  if (lane_id() == 0 && best.index >= 0) taken[best.index] = 1;
  sync_warp();
  return best.index;
}

// values become softmax(values) or σ(values), by the lanes of a warp; the warp meets at the end.
ASSAY_DEVICE void into_scores(double* values, int count, bool sigmoid) {
  const int lane = static_cast<int>(lane_id());
  if (sigmoid) {
    for (int i = lane; i < count; i += 32) values[i] = 1 / (1 + exp(-values[i]));
    sync_warp();
    return;
  }
  double largest = -INFINITY;
  for (int i = lane; i < count; i += 32) largest = fmax(largest, values[i]);
  largest = warp_max(largest);
  double sum = 0;
  for (int i = lane; i < count; i += 32) sum += values[i] = exp(values[i] - largest);
  sum = warp_sum(sum);
  for (int i = lane; i < count; i += 32) values[i] = largest == -INFINITY ? 0 : values[i] / sum;
  sync_warp();
}

struct GateMemory {
  double *scores, *choice, *groups, *weights;
  std::uint8_t *taken, *taken_groups;
};

ASSAY_DEVICE GateMemory gate_memory(const GateArguments& a, unsigned byte_offset) {
  GateMemory m;
  m.scores = shared_memory<double>(byte_offset);
  m.choice = m.scores + a.experts;
  m.groups = m.choice + a.experts;
  m.weights = m.groups + a.groups;
  m.taken = reinterpret_cast<std::uint8_t*>(m.weights + a.top_k);
  m.taken_groups = m.taken + a.experts;
  return m;
}

// A group's largest, or the sum of its two largest.
ASSAY_DEVICE double score_of_group(const double* choice, int size, bool pairs) {
  Candidate first = {0, -1}, second = {0, -1};
  for (int i = 0; i < size; ++i) {
    const Candidate here = {choice[i], i};
    if (goes_before(here, first)) {
      second = first;
      first = here;
    } else if (goes_before(here, second)) {
      second = here;
    }
  }
  return pairs && second.index >= 0 ? first.value + second.value : first.value;
}

ASSAY_DEVICE void mask_groups(const GateArguments& a, const GateMemory& m) {
  const int lane = static_cast<int>(lane_id()), groups = static_cast<int>(a.groups);
  const int experts = static_cast<int>(a.experts), size = experts / groups;
  for (int g = lane; g < groups; g += 32) {
    m.groups[g] = score_of_group(m.choice + g * size, size, a.pairs);
    m.taken_groups[g] = 0;
  }
  sync_warp();
  for (std::uint32_t i = 0; i < a.chosen_groups; ++i) take_best(m.groups, m.taken_groups, groups);
  for (int e = lane; e < experts; e += 32) {
    if (m.taken_groups[e / size] == 0) m.choice[e] = a.masked;
  }
  sync_warp();
}

template <int kTeams>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(32 * kTeams, 1) gate_kernel(const GateArguments a, std::uint32_t bytes) {
  const std::uint32_t token = block_index().x * kTeams + warp_id();
  if (token >= a.tokens) return;  // a warp of its own: no barrier of the block follows
  const GateMemory m = gate_memory(a, warp_id() * bytes);
  const int lane = static_cast<int>(lane_id()), experts = static_cast<int>(a.experts);
  const int top_k = static_cast<int>(a.top_k);
  const float* logits = a.logits + token * a.stride;

  for (int e = lane; e < experts; e += 32) m.scores[e] = static_cast<double>(logits[e]);
  sync_warp();
  if (!a.top_k_first) into_scores(m.scores, experts, a.sigmoid);
  for (int e = lane; e < experts; e += 32) {
    m.choice[e] = m.scores[e] + static_cast<double>(element(a.correction, static_cast<std::uint64_t>(e)));
    m.taken[e] = 0;
  }
  sync_warp();
  if (a.groups > 1) mask_groups(a, m);

  for (int i = 0; i < top_k; ++i) {
    const int best = take_best(m.choice, m.taken, experts);
    if (lane != 0) continue;
    m.weights[i] = m.scores[best];
    a.chosen[static_cast<std::uint64_t>(token) * a.top_k + static_cast<unsigned>(i)] = best;
  }
  sync_warp();
  if (a.top_k_first) into_scores(m.weights, top_k, a.sigmoid);
  double sum = a.epsilon;  // in the order of the choice, in every lane
  for (int i = 0; i < top_k; ++i) sum += m.weights[i];
  for (int i = lane; i < top_k; i += 32) {
    const double w = (a.renormalize ? m.weights[i] / sum : m.weights[i]) * a.scale;
    const float narrow = static_cast<float>(w);
    a.weights[token * a.weights_stride + static_cast<unsigned>(i)] =
        a.bfloat16 ? round_to_bf16(narrow) : narrow;
  }
}

inline void launch_gate(const LaunchPlan& plan, const GateArguments& a, Stream stream) {
  const auto bytes = static_cast<std::uint32_t>(gate_bytes(a.experts, a.top_k, a.groups));
  if (plan.block.x == 128)
    launch(plan, gate_kernel<4>, stream, a, bytes);
  else
    launch(plan, gate_kernel<1>, stream, a, bytes);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
