// What stands in the place of attention in layers that keep a state instead of a cache: Gated DeltaNet, KDA,
// Mamba, short convolutions. Which of them a layer has is told by the roles of its tensors, and all sizes by their
// shapes; a decoder only knows this interface.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/batch.h"
#include "refimpl/step/kv_cache.h"
#include "refimpl/step/taps.h"

namespace assay {

class RecurrentMixer {
 public:
  virtual ~RecurrentMixer() = default;
  virtual std::vector<StateShape> states() const = 0;
  // x: after the layer's norm, [tokens, hidden]; so is what comes of it. Takes the states of `layer` in the caches
  // of the batch a step further.
  virtual Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                         const TapScope& at) const = 0;
};

// What a family's class does in its own way.
struct RecurrentForm {
  double epsilon = 0;  // of the norm behind the scan; 0: that of all norms
  ScanForm scan = ScanForm::recurrent;
  // Mamba-2: the gate comes before the norm; how long a step may be.
  bool gate_first = true;
  double least_step = 0, most_step = std::numeric_limits<double>::infinity();
  // Mamba-2 of Falcon-H1: what it is given, and then z, x, B, C and dt.
  double input_scale = 1;
  std::array<double, 5> part_scales = {1, 1, 1, 1, 1};
  double inner_norms =
      0;  // Mamba of Falcon: ε of norms of dt, B and C that have no weights; 0: there are none
  double decay_floor = 0;  // KDA
  double beta_scale = 1;   // OLMo Hybrid: 2
  // Matrix LSTMs: the soft cap of gates; what is added to a divisor.
  double gate_cap = 15, divisor_epsilon = 1e-6;
  // Where q, k and v have a matrix each: of the gate behind the norm, and of that norm.
  GateForm gate_form = GateForm::sigmoid;
  NormForm norm = NormForm::weight_inside;
  // Lightning attention: how many norms stand side by side behind the scan; q, k and v of each head lie together (MiniMax-01).
  std::size_t norm_groups = 1;
  GateForm norm_gate = GateForm::silu;  // Gated DeltaNet: of the gate behind the norm
  bool heads_in_turn = false;
  // MiniMax-01: of q, k and v; RG-LRU: of the branch beside it; of others: behind convolutions.
  Activation activation = Activation::silu;
};

// Null for a layer that has none.
std::unique_ptr<RecurrentMixer> read_recurrent_mixer(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form);

// Of each kind, in a file of its own.
std::unique_ptr<RecurrentMixer> read_gated_delta_net(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_delta_net_apart(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_mamba2(const Weights& weights, std::size_t layer,
                                            const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_mamba1(const Weights& weights, std::size_t layer,
                                            const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_grouped_mamba(const Weights& weights, std::size_t layer,
                                                   std::size_t groups, const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_lightning_attention(const Weights& weights, std::size_t layer,
                                                         const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_matrix_lstm(const Weights& weights, std::size_t layer,
                                                 const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_short_convolution(const Weights& weights, std::size_t layer);
std::unique_ptr<RecurrentMixer> read_minimax_attention(const Weights& weights, std::size_t layer,
                                                       const RecurrentForm& form);
std::unique_ptr<RecurrentMixer> read_linear_recurrence(const Weights& weights, std::size_t layer,
                                                       const RecurrentForm& form);

// What they share: a matrix with its bias; a convolution and its state; the states of a batch.
struct BiasedWeight {
  WeightView weight, bias;
  static BiasedWeight get(const Weights& weights, const WeightKey& key);
  Matrix operator()(const Matrix& x, Ops& ops) const { return ops.linear(x, weight, bias); }
};
struct CausalConvolution {
  WeightView weight, bias;
  std::size_t channels = 0, kernel = 0;
  static CausalConvolution get(const Weights& weights, std::size_t layer, int number = 0);
  StateShape state() const { return {kernel - 1, channels}; }
  Matrix operator()(const Matrix& x, std::size_t layer, std::size_t part, bool silu, const Batch& batch,
                    Ops& ops) const;
  Matrix activated(const Matrix& x, std::size_t layer, std::size_t part, Activation activation,
                   const Batch& batch, Ops& ops) const;
};
// Throws Error::input where a rank would have some heads of a layer whose heads depend on their number.
void require_all_heads(const Weights& weights, std::size_t layer);
// Of a layer with a delta rule, as the tree says.
std::size_t key_heads_of(const ModuleTree& tree, std::size_t layer);
std::vector<SequenceState> states_of(const Batch& batch, std::size_t layer, std::size_t part);
// Lightning attention's: S <- λ S + k ⊗ v, o = qᵀ S in each head, λ = exp(-exp(decay_log)), which has a number a head; so has
// `nothing`. A state space whose steps are all 1.
struct LightningScan {
  Matrix q, k, v;  // [tokens, heads · width]
  WeightView decay_log, nothing;
  ScanForm form;
  ResultRounding rounding = ResultRounding::as_arithmetic;
  std::vector<SequenceState> states;
  Matrix run(Ops& ops) const;  // [tokens, heads · width]
};
// Throws Error::input, naming the tensor, where shapes do not belong together.
void require_shape(bool holds, const WeightView& weight);

}  // namespace assay
