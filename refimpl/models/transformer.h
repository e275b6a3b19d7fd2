// The decoder most families share, told by data: what norms stand where is read off the checkpoint (each is
// there or it is not), numbers are the tree's Hyperparameters, and how the class rounds and mixes is
// DecoderForm, which a family's file states.
//
//   x = embed(tokens) · embedding_scale
//   each layer:   x = x + post_norm(o(attention(rope(norm(q, k, v of norm(x)))))) · residual_scale
//                 x = x + post_norm(mlp(norm(x))) · residual_scale     mlp: gated, plain, or a mixture of such
//   or:           x = x + attention(norm(x)) + mlp(norm(x))            both of the same x
//   or:           x = norm(x + attention(x)), x = norm(x + mlp(x))     GPT of 2018
//   or:           y = norm(x), x = α y + β attention(y); likewise the MLP    MiniMax-01
//   logits = cap(head(norm(x)) · head_scale)
//
// Or, where form.residual_block says so, with the streams before every so many layers kept (residual_mix.h):
//   x = a + b + …: what attention and MLPs since the last kept one gave, each of norm(mix(kept, x))
//
// Of multi-token prediction, where form.prediction says so: more such layers, and what stands around them (prediction.h).
//
// In place of attention with heads a layer may have latent attention (latent_attention.h), a recurrent mixer
// (recurrent_mixer.h), both attention and a mixer beside each other, or nothing: then it is the MLP alone.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "refimpl/models/feed_forward.h"
#include "refimpl/models/head_attention.h"
#include "refimpl/models/head_block.h"
#include "refimpl/models/inkling_blocks.h"
#include "refimpl/models/model.h"
#include "refimpl/models/prediction.h"
#include "refimpl/models/recurrent_mixer.h"
#include "refimpl/models/sine_positions.h"
#include "refimpl/models/spark_blocks.h"
#include "refimpl/models/stream_mixes.h"

namespace assay {

// Falcon-H1: what each branch is given, and what it gives.
struct BranchScales {
  double attention_in = 1, attention_out = 1, recurrent_out = 1, mlp_gate = 1, mlp_down = 1;
};

// MiniMax-01: the stream behind a block is what its norm gave and what it gave itself, each times a number.
struct StreamShares {
  double stream = 1, block = 1;
};
struct NormedStream {
  StreamShares attention, recurrent, mlp;
};

struct DecoderForm {
  NormForm norm = NormForm::weight_last;
  NormKind norm_kind = NormKind::rms;
  bool unweighted_norms = false;         // before attention and MLP and at the end, though none is stored
  bool rounded_embedding_scale = false;  // a number of the weights' type
  bool branches_first = false;           // (attention + mlp) + x, not (x + attention) + mlp
  std::size_t position_offset = 0;       // learnt positions, or sines: of the first token
  SineForm sines = SineForm::none;       // in place of learnt positions
  std::optional<std::size_t> silent_position = {};  // … of which this row is zero
  bool unweighted_embedding_norm = false;           // what enters the first layer is normed, without weights
  bool norms_behind_sums = false;                   // post norms are of the sums
  std::optional<double> post_epsilon = {};          // of norms behind attention and MLPs
  std::optional<NormForm> final_norm = {};          // of the one before the head, where it is another
  bool passes_uncached = false;             // layers that keep nothing (cross-attention) are passed by
  bool turns_back = false;                  // heads rotate by minus their angles (nanochat)
  std::optional<GatedActivation> mlp = {};  // unset: the one that the config names
  bool up_first = false;                    // MLPs hold ups and gates in one matrix, in this order
  bool alternating = false;                 // … or a gate, an up, the next gate
  bool poly_norm = false;                   // Motif
  std::optional<Activation> experts_activation = {};  // of routed experts, where it is another
  AttentionForm attention = {};
  // Families with experts; how many are chosen, their groups and scale, and whether their weights add up to 1, is
  // the tree's.
  GateRule gate = {};
  ResultRounding router_rounding = ResultRounding::as_arithmetic;
  bool averaged_shared = false;   // what routed and shared experts give, halved
  bool scaled_inputs = false;     // an expert's weight scales what it is given
  bool chosen_by_logits = false;  // experts are chosen by logit_choice()
  double router_cap = 0;          // soft cap of the router's logits; 0: none
  MoeForm moe = MoeForm::sparse;
  bool interleaved_experts = false;
  std::optional<double> jitter = {};  // experts are chosen by sparse_mixer()
  // By layer, or none: where what gates and ups give is cut off, 0 nowhere; of experts, and of shared experts and
  // dense MLPs. Looked at while the decoder is made.
  std::span<const double> expert_limits = {}, shared_limits = {};
  RecurrentForm recurrent = {};  // of layers that keep a state in place of a cache; epsilon is the tree's
  MlaForm latent = MlaForm::absorbed;
  double latent_epsilon = 1e-6;       // of the norms on latents
  double latent_scale = 1;            // of the scores, beside 1/√(width of a head)
  std::optional<SituForm> situ = {};  // Kimi K3: of all MLPs and experts
  std::size_t residual_block = 0;     // Kimi K3: blocks see mixes of the stream, kept every so many layers
  BranchScales scales = {};
  // PLaMo 3: norms of what attention and MLPs give are stored less so much; unset: as the others.
  std::optional<double> attention_post_offset = {}, mlp_post_offset = {};
  // Layers that a token passes several times, each time with a cache of its own; between passes the stream may be
  // normed as it is at the end.
  std::size_t passes = 1;
  bool norm_between = false;
  const StreamMixes* stream_mixes = nullptr;  // Solar Pro; looked at while the decoder is made
  std::optional<NormedStream> normed_stream = {};
  HeadBlock head_block = {};            // or none
  Projection into_stream = {};          // of embeddings that are narrower than the stream; or none
  std::optional<SparkForm> spark = {};  // Muse Spark
  std::optional<InklingForm> inkling = {};
  PredictionForm prediction = {};
};

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form);

}  // namespace assay
