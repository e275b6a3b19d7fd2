// Kimi Linear (arXiv 2510.26692): Kimi Delta Attention in three layers of four, in the others latent attention that
// rotates nothing; DeepSeek-V3's experts. Kimi K3 is that with gates on latent attention, experts in a narrower space, an
// activation of its own and residuals that attend to earlier ones; transformers has no class for it, so what it computes
// is vLLM's (0.30, models/kimi_k3).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kKimiLinearForm = {.gate = {.score = GateRule::Score::sigmoid,
                                                  .epsilon = 1e-20,
                                                  .group_score = GateRule::GroupScore::sum_of_two,
                                                  .rounding = ResultRounding::float32},
                                         .router_rounding = ResultRounding::float32};

// A number of the config, or of a section of it; `otherwise` where it is absent or null.
double kimi_number(const ModelConfig& config, const char* key, double otherwise,
                   const char* section = nullptr) {
  const ParsedJson* object = &config.text();
  if (section != nullptr) {
    const auto nested = object->find(section);
    if (nested == object->end() || !nested->is_object()) return otherwise;
    object = &*nested;
  }
  const auto found = object->find(key);
  if (found == object->end() || found->is_null()) return otherwise;
  if (!found->is_number()) throw Error::input(fmt::format("{} is not a number", key)).in(config.source());
  return found->get<double>();
}

// What Kimi K3 has and Kimi Linear has not.
void read_k3(const Weights& weights, DecoderForm& form) {
  const ModelConfig& config = weights.config();
  form.recurrent.decay_floor = kimi_number(config, "gate_lower_bound", 0, "linear_attn_config");
  const double block = kimi_number(config, "attn_res_block_size", 0);
  if (!(block >= 0 && block <= 1e6))
    throw Error::input("attn_res_block_size is no number of layers").in(config.source());
  form.residual_block = static_cast<std::size_t>(block);
  // vLLM gives latents the ε of other norms, transformers gives Kimi Linear's one of their own.
  if (form.residual_block != 0) form.latent_epsilon = hyperparameters(weights.tree()).epsilon;
  if (hyperparameters(weights.tree()).activation != "situ") return;
  form.mlp = GatedActivation{};  // situ takes its place
  form.situ = {.beta = kimi_number(config, "activation_situ_beta", 1),
               .linear_beta = kimi_number(config, "activation_situ_linear_beta", 0)};
  if (!(form.situ->beta > 0 && form.situ->linear_beta >= 0))
    throw Error::input("activation_situ_beta and activation_situ_linear_beta bend nothing")
        .in(config.source());
}

std::unique_ptr<LanguageModel> make_kimi_linear(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  DecoderForm form = kKimiLinearForm;
  form.moe = options.moe;
  form.latent = options.mla;
  form.recurrent.scan = options.scan;
  read_k3(weights, form);
  if (!form.situ) form.recurrent.activation = activation_of(weights);
  return make_decoder(weights, form);
}

constexpr std::string_view kKimiLinearFamilies[] = {"kimi_linear", "kimi_k3"};
constexpr std::string_view kKimiLinearUsed[] = {"vocab_size",
                                                "hidden_size",
                                                "intermediate_size",
                                                "num_hidden_layers",
                                                "num_attention_heads",
                                                "hidden_act",
                                                "rms_norm_eps",
                                                "max_position_embeddings",
                                                "model_max_length",
                                                "tie_word_embeddings",
                                                "kv_lora_rank",
                                                "q_lora_rank",
                                                "qk_nope_head_dim",
                                                "qk_rope_head_dim",
                                                "v_head_dim",
                                                "attention_bias",
                                                "linear_attn_config",
                                                "first_k_dense_replace",
                                                "moe_layer_freq",
                                                "num_experts",
                                                "num_local_experts",
                                                "num_experts_per_token",
                                                "num_experts_per_tok",
                                                "num_shared_experts",
                                                "n_shared_experts",
                                                "moe_intermediate_size",
                                                "num_expert_group",
                                                "n_group",
                                                "topk_group",
                                                "moe_renormalize",
                                                "norm_topk_prob",
                                                "attn_res_block_size",
                                                "activation_situ_beta",
                                                "activation_situ_linear_beta",
                                                "mla_use_output_gate",
                                                "routed_expert_hidden_size",
                                                "latent_moe_use_norm",
                                                "routed_scaling_factor",
                                                "linear_head_dim",
                                                "linear_num_heads",
                                                "linear_conv_kernel_dim",
                                                "layer_types"};
// Widths that follow from others; prediction layers that nobody has published; rotation, of which there is none; what
// first_k_dense_replace says as well.
constexpr std::string_view kKimiLinearIdle[] = {
    "head_dim",     "num_key_value_heads", "num_nextn_predict_layers", "rope_theta",
    "rope_scaling", "mlp_layer_types",     "use_grouped_topk"};
constexpr FixedKey kKimiLinearFixed[] = {
    {"mla_use_nope", "true"}, {"moe_router_activation_func", "\"sigmoid\""}, {"topk_method", "\"noaux_tc\""}};

}  // namespace

const ModelRule kKimiLinearRule = {
    kKimiLinearFamilies, {}, {kKimiLinearUsed, kKimiLinearIdle, kKimiLinearFixed}, make_kimi_linear};

}  // namespace assay
