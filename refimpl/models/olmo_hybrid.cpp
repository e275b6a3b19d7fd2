// OLMo Hybrid: Gated DeltaNet with a matrix and a convolution each for q, k and v (arXiv 2412.06464), whose β may be
// doubled; OLMo 2's attention in the other layers, behind which the norms stand, not before. Released models rotate
// nothing.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_olmo_hybrid(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  ConfigReader config(weights.config(), "olmo_hybrid");
  const bool doubled = config.flag("linear_allow_neg_eigval", true);
  return make_decoder(weights,
                      {.norm = NormForm::weight_inside,
                       .recurrent = {.epsilon = 1e-5,  // of the class, whatever the config says of others
                                     .scan = options.scan,
                                     .beta_scale = doubled ? 2.0 : 1.0,
                                     .gate_form = GateForm::silu,
                                     .norm = NormForm::weight_last,
                                     .activation = activation_of(weights)}});
}

constexpr std::string_view kOlmoHybridFamilies[] = {"olmo_hybrid"};
constexpr auto kOlmoHybridUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "layer_types",
              "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
              "linear_value_head_dim", "linear_conv_kernel_dim", "linear_allow_neg_eigval"});
// How weights are drawn before there are any.
constexpr std::string_view kOlmoHybridIdle[] = {"linear_a_log_min", "linear_a_log_max", "linear_dt_min",
                                                "linear_dt_max", "linear_dt_init_floor"};

}  // namespace

const ModelRule kOlmoHybridRule = {
    kOlmoHybridFamilies, {}, {kOlmoHybridUsed, kOlmoHybridIdle}, make_olmo_hybrid};

}  // namespace assay
