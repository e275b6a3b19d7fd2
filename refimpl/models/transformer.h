// The decoder most families share, told by data: what norms stand where is read off the checkpoint (each is
// there or it is not), the rest is DecoderSettings, which a family's file fills.
//
//   x = embed(tokens) · embedding_scale
//   each layer:   x = x + post_norm(o(attention(rope(norm(q, k, v of norm(x))))))
//                 x = x + post_norm(mlp(norm(x)))          mlp: gated, or a mixture of such experts
//   logits = cap(head(norm(x)))
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/models/rope_table.h"

namespace assay {

struct DecoderSettings {
  NormForm norm = NormForm::weight_last;
  double epsilon = 1e-6;
  GatedActivation mlp;
  RopeLayout rope_layout = RopeLayout::half_split;
  std::vector<RopeRule> ropes;  // one, or one for each kind of layer
  std::vector<std::optional<std::size_t>>
      rope_of;                 // by layer: which of `ropes`; nullopt: the layer rotates nothing
  double attention_scale = 0;  // 0: 1 / √head_dim
  double attention_cap = 0, final_cap = 0;
  double embedding_scale = 1;
  // Families with experts.
  GateRule gate;
  MoeForm moe = MoeForm::sparse;
  bool interleaved_experts = false;
};
// What a family's class of transformers has where the config is silent.
struct DecoderClass {
  double epsilon = 1e-6;
  RopeClass rope;
  std::string_view activation_key = "hidden_act", activation = "silu";
  std::string_view layer_type = {};  // whose rope_parameters, where kinds of layers have their own
};
// What every family reads alike: ε, the activation, one rope.
DecoderSettings read_decoder_settings(const Weights& weights, const DecoderClass& of_class);

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, DecoderSettings settings);

}  // namespace assay
