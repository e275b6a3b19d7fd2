// The operations a forward pass is made of: what models call, what kernels implement.
//
// ReferenceOps (reference.h) is their meaning, in plain loops. An implementation of its own derives from it
// and overrides what it does faster; the engine runs on any. All results are fresh matrices in the memory of
// the implementation; arguments are never changed, but where a call says so.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/calls.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/ops/recurrent_calls.h"

namespace assay {

class Ops {
 public:
  explicit Ops(const Arithmetic& arithmetic, int jobs) : arithmetic_(arithmetic), jobs_(jobs) {}
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;
  virtual ~Ops() = default;

  const Arithmetic& arithmetic() const { return arithmetic_; }
  int jobs() const { return jobs_; }

  // Memory. upload() rounds as the arithmetic stores.
  virtual Matrix allocate(std::size_t rows, std::size_t columns) = 0;
  virtual Matrix upload(std::span<const double> values, std::size_t rows, std::size_t columns) = 0;
  virtual std::vector<double> download(const Matrix& x) = 0;
  // Copies row i of `source` to row `position + i` of the cache: changes `cache`.
  virtual void store(const PagedKvView& cache, std::size_t position, const Matrix& source) = 0;
  // Rows of x in the order given: the last of each sequence.
  virtual Matrix gather(const Matrix& x, std::span<const std::size_t> rows) = 0;

  virtual Matrix run(const EmbeddingCall& call) = 0;
  virtual Matrix run(const LinearCall& call) = 0;
  virtual Matrix run(const RmsNormCall& call) = 0;
  virtual Matrix run(const LayerNormCall& call) = 0;
  virtual Matrix run(const RotaryCall& call) = 0;     // changes call.x
  virtual Matrix run(const AttentionCall& call) = 0;  // [tokens, heads · v_dim]
  virtual Matrix run(const MlaCall& call) = 0;        // [tokens, heads · v_dim]
  virtual Matrix run(const ActivationCall& call) = 0;
  virtual Matrix run(const GatedActivationCall& call) = 0;
  virtual Matrix run(const SoftmaxCall& call) = 0;
  virtual Routing run(const MoeGateCall& call) = 0;
  virtual Matrix run(const FusedMoeCall& call) = 0;
  virtual QuantizedMatrix run(const QuantizeCall& call) = 0;
  virtual Matrix run(const DequantizeCall& call) = 0;
  // Those of recurrent layers change the states behind their tokens (SequenceState::after).
  virtual Matrix run(const ConvolutionCall& call) = 0;  // [tokens, channels]
  virtual Matrix run(const DeltaRuleCall& call) = 0;    // [tokens, value_heads · value_dim]
  virtual Matrix run(const StateSpaceCall& call) = 0;   // [tokens, heads · head_dim]
  virtual Matrix run(const GatedNormCall& call) = 0;
  virtual Matrix run(const OutputGateCall& call) = 0;
  virtual KeyChoice run(const IndexCall& call) = 0;

  // Products of one x by several weights, each as run() makes it: an implementation may make them side by side.
  virtual std::vector<Matrix> run_together(std::span<const LinearCall> calls) {
    std::vector<Matrix> made;
    for (const LinearCall& call : calls) made.push_back(run(call));
    return made;
  }

  // Too small to be worth a kernel.
  virtual Matrix add(const Matrix& a, const Matrix& b) = 0;
  virtual Matrix multiply(const Matrix& x, double factor) = 0;  // the factor is taken as it is
  virtual Matrix soft_cap(const Matrix& x, double cap) = 0;     // cap · tanh(x / cap)
  // Columns in as many equal groups as `factors` has, each × its factor of the row: [tokens, groups]
  virtual Matrix scale(const Matrix& x, const Matrix& factors) = 0;
  virtual Matrix clamp(const Matrix& x, double limit) = 0;           // to ± limit
  virtual Matrix concatenate(const Matrix& a, const Matrix& b) = 0;  // [tokens, a + b]

  // Of every run of `width` columns the `count` from `first` on: [tokens, columns / width · count].
  virtual Matrix of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) = 0;

  // The same calls, as models write them.
  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) {
    return run(EmbeddingCall{{tokens.begin(), tokens.end()}, table});
  }
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias = {},
                ResultRounding rounding = ResultRounding::as_arithmetic) {
    return run(LinearCall{x, weight, bias, rounding});
  }
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) {
    return run(RmsNormCall{x, weight, epsilon, form});
  }
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias, double epsilon) {
    return run(LayerNormCall{x, weight, bias, epsilon});
  }
  void rope(const Matrix& x, const RopeCall& angles) { run(RotaryCall{x, angles}); }
  Matrix attention(const AttentionCall& call) { return run(call); }
  Matrix mla(const MlaCall& call) { return run(call); }
  Matrix activation(const Matrix& x, Activation kind) { return run(ActivationCall{x, kind}); }
  Matrix gated_activation(const Matrix& gate, const Matrix& up, const GatedActivation& form) {
    return run(GatedActivationCall{gate, up, form});
  }
  Matrix softmax(const Matrix& x) { return run(SoftmaxCall{x}); }
  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) {
    return run(MoeGateCall{logits, correction, rule});
  }
  Matrix fused_moe(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                   MoeForm form = MoeForm::sparse) {
    return run(FusedMoeCall{x, routing, experts, form});
  }
  QuantizedMatrix quantize(const Matrix& x, const QuantizeRule& rule) { return run(QuantizeCall{x, rule}); }
  Matrix dequantize(const QuantizedMatrix& x) { return run(DequantizeCall{x}); }
  Matrix output_gate(const Matrix& x, const Matrix& gate, GateForm form = GateForm::sigmoid) {
    return run(OutputGateCall{x, gate, form});
  }
  KeyChoice choose_keys(const IndexCall& call) { return run(call); }

 private:
  Arithmetic arithmetic_;
  int jobs_;
};

}  // namespace assay
