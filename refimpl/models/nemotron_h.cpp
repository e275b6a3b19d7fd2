// Nemotron-H and Nemotron 3 (NVIDIA): each layer is one mixer behind one norm: Mamba-2, attention that rotates nothing, an
// MLP of relu², or experts of that kind, from Super on in a narrower space, in Puzzle's models as many as the layer says. What predicts one more token is attention and
// experts, each in a layer of its own.
//
// Where the references disagree (--variant):
//
//   transformers  steps of the state space are time_step_min long at least, and time_step_limit is not looked at
//   (default)     (of single tokens its class takes steps as they are: what it says then depends on where a text is cut)
//   nvidia        the code published with the weights: time_step_limit bounds them, (0, ∞) where it is not given
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/step_limits.h"

namespace assay {
namespace {

constexpr std::string_view kNvidia = "nvidia";
constexpr std::string_view kNemotronHVariants[] = {"transformers", kNvidia};

double least_step(const ModelConfig& config) {
  for (const char* key : {"time_step_min", "mamba_dt_min"}) {
    const auto found = config.text().find(key);
    if (found == config.text().end()) continue;
    if (!found->is_number() || !(found->get<double>() >= 0))
      throw Error::input(fmt::format("{} is not a number from 0 on", key)).in(config.source());
    return found->get<double>();
  }
  return 0.001;
}

// All that are stored: the projection stands in the first, the norm behind them in the last.
std::size_t draft_layers(const ModuleTree& tree) {
  std::size_t count = 0;
  for (const Module& layer : tree.mtp.front().children) count += layer.repeat.indices.size();
  return count;
}

constexpr DecoderForm kNemotronHForm = {.norm = NormForm::weight_inside,
                                        .gate = {.score = GateRule::Score::sigmoid,
                                                 .epsilon = 1e-20,
                                                 .group_score = GateRule::GroupScore::sum_of_two,
                                                 .rounding = ResultRounding::float32},
                                        .router_rounding = ResultRounding::float32};

std::unique_ptr<LanguageModel> make_nemotron_h(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  DecoderForm form = kNemotronHForm;
  form.moe = options.moe;
  form.recurrent.scan = options.scan;
  form.prediction.layers = weights.tree().mtp.empty() ? 0 : draft_layers(weights.tree());
  if (options.variant == kNvidia)
    read_step_limits(weights.config(), form.recurrent);
  else
    form.recurrent.least_step = least_step(weights.config());
  return make_decoder(weights, form);
}

constexpr std::string_view kNemotronHFamilies[] = {"nemotron_h"};
constexpr std::string_view kNemotronHUsed[] = {"vocab_size",
                                               "hidden_size",
                                               "intermediate_size",
                                               "num_hidden_layers",
                                               "layers_block_type",
                                               "layer_types",
                                               "hybrid_override_pattern",
                                               "num_attention_heads",
                                               "num_key_value_heads",
                                               "head_dim",
                                               "attention_head_dim",
                                               "layer_norm_epsilon",
                                               "max_position_embeddings",
                                               "mlp_hidden_act",
                                               "mlp_bias",
                                               "use_bias",
                                               "use_conv_bias",
                                               "mamba_num_heads",
                                               "mamba_head_dim",
                                               "n_groups",
                                               "mamba_n_groups",
                                               "ssm_state_size",
                                               "conv_kernel",
                                               "mamba_d_conv",
                                               "time_step_min",
                                               "mamba_dt_min",
                                               "time_step_limit",
                                               "block_configs",
                                               "mtp_block_configs",
                                               "n_routed_experts",
                                               "num_local_experts",
                                               "n_shared_experts",
                                               "num_experts_per_tok",
                                               "moe_intermediate_size",
                                               "moe_shared_expert_intermediate_size",
                                               "moe_latent_size",
                                               "n_group",
                                               "topk_group",
                                               "norm_topk_prob",
                                               "routed_scaling_factor"};
// How weights began, how many tokens a scan takes at once, what was trained; of prediction layers; widths that follow.
constexpr std::string_view kNemotronHIdle[] = {"time_step_max",
                                               "time_step_floor",
                                               "time_step_rank",
                                               "mamba_dt_max",
                                               "mamba_dt_limit",
                                               "mamba_dt_init_floor",
                                               "mamba_chunk_size",
                                               "mamba_expand",
                                               "mamba_proj_bias",
                                               "mamba_ssm_cache_dtype",
                                               "chunk_size",
                                               "expand",
                                               "use_mamba_kernels",
                                               "num_logits_to_keep",
                                               "rescale_prenorm_residual",
                                               "residual_in_fp32",
                                               "moe_shared_expert_overlap",
                                               "num_nextn_predict_layers",
                                               "mtp_hybrid_override_pattern",
                                               "mtp_layers_block_type",
                                               "tie_word_embeddings",
                                               "attention_bias",
                                               "sliding_window",
                                               "norm_eps",
                                               "rms_norm_eps",
                                               "rope_theta",
                                               "partial_rotary_factor"};
constexpr FixedKey kNemotronHFixed[] = {{"mamba_hidden_act", "\"silu\""}, {"mamba_conv_bias", "true"}};

}  // namespace

const ModelRule kNemotronHRule = {kNemotronHFamilies,
                                  kNemotronHVariants,
                                  {kNemotronHUsed, kNemotronHIdle, kNemotronHFixed},
                                  make_nemotron_h};

}  // namespace assay
