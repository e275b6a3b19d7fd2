// Inkling (Thinking Machines): attention by relative places, short convolutions, experts beside shared ones that share their
// weights. Source: transformers 5.23 (inkling).
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

// As published, where gates and ups lie row by row; transformers saves all gates of an expert first.
bool experts_alternate(const ModuleTree& tree) {
  bool found = false;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    found |= spec.role == Role::mlp_gate_up && spec.part == Part::routed_expert && spec.parallel.interleaved;
  });
  return found;
}

std::unique_ptr<LanguageModel> make_inkling(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Inkling");
  DecoderForm form;
  form.interleaved_experts = experts_alternate(weights.tree());
  form.inkling = {.route_scale = config.real("route_scale", 8, -1e6, 1e6)};
  if (config.has("unpadded_vocab_size")) form.inkling->words = config.size("unpadded_vocab_size").value();
  // Hidden states first, unless the config says otherwise; all modules share one norm behind them, or have none.
  form.prediction = {.layers = 1,
                     .in_series = true,
                     .hidden_first = config.flag("mtp_hidden_states_first", true),
                     .final_norm = PredictionForm::FinalNorm::none,
                     .normed_embedding = true};
  if (weights.find({.role = Role::final_norm, .part = Part::mtp, .layer = weights.tree().layers}))
    form.prediction.final_norm = PredictionForm::FinalNorm::of_first;
  form.attention.relative = {.floor = config.real("log_scaling_n_floor", 0, 0, 1e12),
                             .alpha = config.real("log_scaling_alpha", 0.1, -1e6, 1e6)};
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kInkling[] = {"inkling"};
constexpr std::string_view kInklingUsed[] = {"vocab_size",
                                             "unpadded_vocab_size",
                                             "hidden_size",
                                             "intermediate_size",
                                             "dense_intermediate_size",
                                             "moe_intermediate_size",
                                             "num_hidden_layers",
                                             "num_attention_heads",
                                             "num_key_value_heads",
                                             "head_dim",
                                             "swa_num_attention_heads",
                                             "swa_num_key_value_heads",
                                             "swa_head_dim",
                                             "sliding_window_size",
                                             "sliding_window",
                                             "d_rel",
                                             "rel_extent",
                                             "log_scaling_n_floor",
                                             "log_scaling_alpha",
                                             "local_layer_ids",
                                             "layer_types",
                                             "mlp_layer_types",
                                             "dense_mlp_idx",
                                             "max_position_embeddings",
                                             "model_max_length",
                                             "rms_norm_eps",
                                             "conv_kernel_size",
                                             "sconv_kernel_size",
                                             "hidden_act",
                                             "n_routed_experts",
                                             "num_local_experts",
                                             "num_experts_per_tok",
                                             "n_shared_experts",
                                             "route_scale",
                                             "logits_mup_width_multiplier",
                                             "embedding_multiplier",
                                             "tie_word_embeddings",
                                             "num_mtp_layers",
                                             "num_nextn_predict_layers",
                                             "chain_hidden_post_norm",
                                             "mtp_hidden_states_first",
                                             "mtp_local_layer_ids",
                                             "mtp_config"};
// What the class reads nowhere.
constexpr std::string_view kInklingIdle[] = {"rms_norm_eps_moe_gate", "rope_parameters"};
constexpr FixedKey kInklingFixed[] = {{"shared_expert_sink", "true"}};

}  // namespace

const ModelRule kInklingRule = {kInkling, {}, {kInklingUsed, kInklingIdle, kInklingFixed}, make_inkling};

}  // namespace assay
