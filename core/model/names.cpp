// How roles and parts are spelled, for reports and JSON.
#include <array>

#include "core/model/module_tree.h"

namespace assay {

std::string_view name(Role role) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Role::buffer) + 1> kNames = {
      "token_embedding",
      "position_embedding",
      "output_head",
      "q",
      "k",
      "v",
      "qkv",
      "attention_output",
      "q_norm",
      "k_norm",
      "sinks",
      "q_a",
      "q_a_norm",
      "q_b",
      "kv_a",
      "kv_a_norm",
      "kv_b",
      "indexer_q",
      "indexer_k",
      "indexer_k_norm",
      "indexer_weights",
      "compressor",
      "attention_gate",
      "recurrent_in",
      "recurrent_gate",
      "recurrent_beta",
      "recurrent_decay",
      "recurrent_norm",
      "recurrent_out",
      "convolution",
      "decay",
      "time_bias",
      "skip",
      "mlp_gate",
      "mlp_up",
      "mlp_gate_up",
      "mlp_down",
      "router",
      "router_correction",
      "router_scale",
      "shared_expert_gate",
      "latent_down",
      "latent_norm",
      "latent_up",
      "embedding_norm",
      "input_norm",
      "post_attention_norm",
      "pre_feedforward_norm",
      "post_feedforward_norm",
      "final_norm",
      "layer_scale",
      "residual_mix",
      "per_layer_embedding",
      "mtp_embedding_norm",
      "mtp_hidden_norm",
      "mtp_projection",
      "tower",
      "other",
      "buffer"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view name(Part part) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Part::buffer) + 1> kNames = {
      "embedding", "attention", "dense_mlp", "router", "shared_expert", "routed_expert", "norm",
      "output",    "mtp",       "vision",    "audio",  "projector",     "buffer"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view title(Part part) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Part::buffer) + 1> kTitles = {
      "embedding", "attention",      "dense MLP",
      "router",    "shared experts", "routed experts",
      "norms",     "output head",    "multi-token prediction",
      "vision",    "audio",          "projector",
      "buffers"};
  return kTitles[static_cast<std::size_t>(part)];
}

}  // namespace assay
