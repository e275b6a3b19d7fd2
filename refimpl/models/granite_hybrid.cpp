// Granite 4 (IBM): Mamba-2 in most layers, attention in the others, which rotates only if it is told to; experts beside a
// shared MLP, or that alone.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/step_limits.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_granite_hybrid(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  DecoderForm form = {.gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic},
                      .moe = options.moe,
                      .recurrent = {.scan = options.scan, .activation = activation_of(weights)}};
  read_step_limits(weights.config(), form.recurrent);
  return make_decoder(weights, form);
}

constexpr std::string_view kGraniteHybridFamilies[] = {"granitemoehybrid"};
constexpr auto kGraniteHybridUsed = decoder_keys({"num_key_value_heads",
                                                  "hidden_act",
                                                  "head_dim",
                                                  "attention_bias",
                                                  "embedding_multiplier",
                                                  "logits_scaling",
                                                  "residual_multiplier",
                                                  "attention_multiplier",
                                                  "num_local_experts",
                                                  "num_experts_per_tok",
                                                  "shared_intermediate_size",
                                                  "position_embedding_type",
                                                  "layer_types",
                                                  "layers_block_type",
                                                  "mamba_n_heads",
                                                  "mamba_d_head",
                                                  "mamba_n_groups",
                                                  "mamba_d_state",
                                                  "mamba_d_conv",
                                                  "mamba_expand",
                                                  "mamba_conv_bias",
                                                  "mamba_proj_bias",
                                                  "time_step_limit"});
// How many tokens a scan takes at once; norms, which are RMS norms whatever the config says.
constexpr std::string_view kGraniteHybridIdle[] = {"mamba_chunk_size", "normalization_function",
                                                   "init_method"};

}  // namespace

const ModelRule kGraniteHybridRule = {
    kGraniteHybridFamilies, {}, {kGraniteHybridUsed, kGraniteHybridIdle}, make_granite_hybrid};

}  // namespace assay
