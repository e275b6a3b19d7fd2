// Mamba and Mamba-2 by themselves: a norm and a mixer a layer, no attention, no MLP. Falcon-Mamba norms what its scan is
// given, without weights.
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/step_limits.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_mamba(const Weights& weights, const ModelOptions& options) {
  const ModelConfig& source = weights.config();
  DecoderForm form = {.recurrent = {.scan = options.scan}};
  if (source.model_type() == "falcon_mamba")
    form.recurrent.inner_norms = ConfigReader(source, "Falcon-Mamba").real("mixer_rms_eps", 1e-6, 1e-30, 1);
  return make_decoder(weights, form);
}
std::unique_ptr<LanguageModel> make_mamba2(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = {.recurrent = {.scan = options.scan}};
  read_step_limits(weights.config(), form.recurrent);
  return make_decoder(weights, form);
}

constexpr std::string_view kMambaFamilies[] = {"mamba"};
constexpr std::string_view kMambaUsed[] = {
    "vocab_size",  "hidden_size",         "d_model",      "num_hidden_layers",
    "n_layer",     "tie_word_embeddings", "state_size",   "intermediate_size",
    "expand",      "time_step_rank",      "use_bias",     "use_conv_bias",
    "conv_kernel", "layer_norm_epsilon",  "mixer_rms_eps"};
constexpr std::string_view kMamba2Families[] = {"mamba2"};
constexpr std::string_view kMamba2Used[] = {"vocab_size",
                                            "hidden_size",
                                            "d_model",
                                            "num_hidden_layers",
                                            "n_layer",
                                            "tie_word_embeddings",
                                            "state_size",
                                            "num_heads",
                                            "head_dim",
                                            "expand",
                                            "n_groups",
                                            "use_bias",
                                            "conv_kernel",
                                            "use_conv_bias",
                                            "layer_norm_epsilon",
                                            "time_step_limit"};
// How weights began, how many tokens a scan takes at once, which of several forms it has. The stream of layers is as wide
// as activations are here, whatever residual_in_fp32 says.
constexpr std::string_view kMambaIdle[] = {"time_step_scale",
                                           "time_step_min",
                                           "time_step_max",
                                           "time_step_init_scheme",
                                           "time_step_floor",
                                           "use_mambapy",
                                           "use_falcon_mambapy",
                                           "rescale_prenorm_residual",
                                           "use_associative_scan",
                                           "residual_in_fp32",
                                           "chunk_size",
                                           "d_inner",
                                           "ssm_cfg",
                                           "pad_vocab_size_multiple",
                                           "fused_add_norm",
                                           "rms_norm",
                                           "norm_before_gate",
                                           "initializer_range",
                                           "layer_types",
                                           "time_step_rank"};
constexpr FixedKey kMambaFixed[] = {{"hidden_act", "\"silu\""}};

}  // namespace

const ModelRule kMambaRule = {kMambaFamilies, {}, {kMambaUsed, kMambaIdle, kMambaFixed}, make_mamba};
const ModelRule kMamba2Rule = {kMamba2Families, {}, {kMamba2Used, kMambaIdle, kMambaFixed}, make_mamba2};

}  // namespace assay
