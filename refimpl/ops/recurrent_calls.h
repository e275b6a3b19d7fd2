// The operations of layers that keep a state of fixed size in place of keys and values: causal convolutions,
// the gated delta rule, selective state spaces, the norms behind them, and gates.
//
// A state is read from one matrix and written to others, so that a step which is given up leaves it as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

// One sequence within a batch, and its state around this step.
struct SequenceState {
  std::size_t first = 0, tokens = 0;  // rows of the call's matrices
  Matrix before;                      // empty: the sequence begins here, and the state is 0
  std::vector<Matrix> after;          // behind each of the step's last tokens, one at least: the last one
};

enum class GateForm : std::uint8_t { sigmoid, silu, identity };

// y[t, c] = act(Σᵢ w[c, i] · x[t - kernel + 1 + i, c] + b[c]), of each channel by itself. The state is the last
// kernel - 1 inputs, the oldest first: [kernel - 1, channels].
struct ConvolutionCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "convolution";
  Matrix x;                 // [tokens, channels]
  WeightView weight, bias;  // [channels, kernel]; bias may be absent
  bool silu = true;
  std::vector<SequenceState> sequences;
};

// How a recurrence is computed: token by token, or as products of matrices over some tokens at once.
enum class ScanForm : std::uint8_t { recurrent, chunked };

// The gated delta rule (arXiv 2412.06464; with a decay of its own for each channel: KDA, arXiv 2510.26692). For
// each value head, with q and k of length 1 (‖x‖ = √(Σ x² + norm_epsilon)) and q times the scale,
//
//   g = -exp(A_log) · softplus(decay + decay_bias), or where decay_floor l is not 0: l · σ(exp(A_log) · (…))
//   β = beta_scale · σ(beta)
//   S ← exp(g) S;  S ← S + k ⊗ (β (v - kᵀS));  o = qᵀS
//
// Value head h has the q and k of key head h / (value_heads / key_heads). The state: [value_heads · key_dim,
// value_dim], never rounded further than to float32.
struct DeltaRuleCall {
  using Result = Matrix;  // [tokens, value_heads · value_dim]
  static constexpr std::string_view kOp = "delta_rule";
  Matrix q, k;                       // [tokens, key_heads · key_dim]
  Matrix v;                          // [tokens, value_heads · value_dim]
  Matrix decay;                      // [tokens, value_heads], or [tokens, value_heads · key_dim]
  Matrix beta;                       // [tokens, value_heads]
  WeightView decay_log, decay_bias;  // A_log: of each value head; dt_bias: of each column of decay
  double decay_floor = 0;
  double beta_scale = 1;  // 2: eigenvalues of the state's step may be negative (arXiv 2411.12537)
  std::size_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  double norm_epsilon = 1e-6;  // 0: q and k are taken as they are
  double scale = 1;
  ScanForm form = ScanForm::recurrent;
  std::vector<SequenceState> sequences;
};

// A selective state space (Mamba-2, arXiv 2405.21060; Mamba, 2312.00752, where a head is one channel and
// decay_log has a row for it). For each head, with step = clamp(softplus(step + step_bias)),
//
//   H ← exp(-exp(A_log) · step) H + step · x ⊗ B;  y = H C + D x
//
// Head h has the B and C of group h / (heads / groups). The state: [heads · head_dim, state].
struct StateSpaceCall {
  using Result = Matrix;  // [tokens, heads · head_dim]
  static constexpr std::string_view kOp = "state_space";
  Matrix x;                               // [tokens, heads · head_dim]
  Matrix b, c;                            // [tokens, groups · state]
  Matrix step;                            // [tokens, heads]
  WeightView decay_log, skip, step_bias;  // A_log: [heads] or [heads, state]; D: [heads]; dt_bias: [heads]
  double least_step = 0, most_step = std::numeric_limits<double>::infinity();
  std::size_t heads = 0, head_dim = 0, groups = 1, state = 0;
  ScanForm form = ScanForm::recurrent;
  ResultRounding rounding = ResultRounding::as_arithmetic;
  std::vector<SequenceState> sequences;
};

// y = norm(x) · w · act(gate), or where gate_first y = norm(x · act(gate)) · w; norms are RMS norms over runs of
// `group` columns. w has as many numbers as x has columns, or fewer and begins anew. What is rounded before the
// weight comes in: `form`.
struct GatedNormCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "gated_norm";
  Matrix x, gate;
  WeightView weight;
  double epsilon = 0;
  std::size_t group = 0;
  bool gate_first = false;
  GateForm gate_form = GateForm::silu;
  NormForm form = NormForm::weight_last;
};

// y = x · act(gate), where one gate scales x.columns / gate.columns columns side by side: all of them, a head,
// or itself alone. Under bf16 act(gate) is rounded.
struct OutputGateCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "output_gate";
  Matrix x, gate;
  GateForm form = GateForm::sigmoid;
};

}  // namespace assay
