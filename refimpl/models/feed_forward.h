// What follows attention in a layer: one gated MLP, or a mixture of experts with or without shared ones.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "refimpl/models/model.h"
#include "refimpl/models/norms.h"
#include "refimpl/models/poly_norm.h"
#include "refimpl/models/projection.h"
#include "refimpl/models/xielu.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/taps.h"

namespace assay {

// Kimi K3's activation: β tanh(gate / β) σ(gate) · l tanh(up / l); without l, up as it is.
struct SituForm {
  double beta = 1, linear_beta = 0;
};

// down(act(gate(x) · gate_scale) · up(x)) · down_scale; gate and up may be one matrix, gates first. Without a gate:
// down(act(up(x))); without either: down(x).
struct GatedMlp {
  WeightView gate, up, gate_up, down;
  WeightView gate_bias, up_bias, gate_up_bias, down_bias;
  GatedActivation form;
  std::optional<SituForm> situ;           // in place of `form`
  double gate_scale = 1, down_scale = 1;  // Falcon-H1
  double limit = 0;                       // 0: none; else act(gate) ends above there, and up at ± it
  bool limit_first = false;               // … or the gate does, before act (GLM-5.3, HY4)
  std::optional<Xielu> xielu;             // in place of `form`, without a gate
  std::optional<PolyNorm> poly;           // … with one: Motif
  Norm inner_norm;                        // of what `down` is given (BitNet); set by the caller
  bool up_first = false;                  // of gate_up: Molmo2's
  bool alternating = false;  // … whose rows are a gate, an up, the next gate: Inkling, as published

  static GatedMlp read(const Weights& weights, std::size_t layer, Part part, const GatedActivation& form);
  Matrix forward(const Matrix& x, Ops& ops) const;  // [tokens, hidden]
  Matrix inner(const Matrix& x, Ops& ops) const;    // [tokens, width]: what `down` is given
};

struct SharedSinks;

struct Mixture {
  WeightView router, router_bias, correction;
  WeightView expert_scales;  // [experts]: a chosen expert's weight is scaled by its own
  ResultRounding router_rounding = ResultRounding::as_arithmetic;
  GateRule rule;
  ExpertWeights experts;
  std::optional<GatedMlp> shared;  // for every token, beside the experts
  bool averaged = false;           // the mean of what both give
  WeightView shared_gate;          // [1, hidden]: σ of it scales what the shared expert gives
  // Experts in a narrower space than the layer (LatentMoE): up(norm(experts(down(x)))), of which the norm may be absent.
  Projection latent_down, latent_up;
  Norm latent_norm;
  Norm latent_in_norm;      // Muse Spark: of what experts in a narrower space are given
  Norm expert_norm;         // … and of what each of them gives, before its weight
  double router_scale = 1;  // … and its logits times this
  bool by_logits = false;   // chosen by logit_choice()
  double router_cap = 0;    // of the router's logits: cap · tanh(x / cap); 0: none
  double limit = 0;         // of what experts' gates and ups give, as GatedMlp's
  bool limit_first = false;
  std::optional<double> jitter;  // chosen by sparse_mixer(), whatever `rule` says
  bool scaled_inputs = false;    // an expert is given x · its weight; what experts give is added as it is
  std::optional<SituForm> situ;  // of the routed experts, in place of experts.form
  MoeForm mixing = MoeForm::sparse;
  std::shared_ptr<const SharedSinks> sinks;  // Inkling, in place of `shared`

  // Router, correction, experts, and the shared expert where the layer has one. The caller
  // sets rule and roundings.
  static Mixture read(const Weights& weights, std::size_t layer, const GatedActivation& form, MoeForm mixing);
  // Taps: router_logits and router_weights, both [tokens, experts]; a weight is 0 where not chosen.
  Matrix forward(const Matrix& x, Ops& ops, const TapScope& at) const {  // [tokens, hidden]
    return forward(x, x, ops, at);
  }
  // `seen` is what the router is given.
  Matrix forward(const Matrix& seen, const Matrix& x, Ops& ops, const TapScope& at) const;

 private:
  Routing choose(const Matrix& logits, Ops& ops) const;
  Matrix routed(const Matrix& x, const Routing& routing, Ops& ops) const;
  Matrix one_by_one(const Matrix& x, const Routing& routing, Ops& ops) const;
};

// The layer has a router.
bool is_mixture(const Weights& weights, std::size_t layer);

}  // namespace assay
