// Falcon-H1 (TII): in every layer attention and Mamba-2 beside each other, of the same norm; what each branch is given and
// gives is scaled by multipliers of the config.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/step_limits.h"

namespace assay {
namespace {

class Multipliers {
 public:
  explicit Multipliers(const ModelConfig& config) : config_(config) {}
  // 1 where there is none.
  double one(std::string_view key) const {
    const auto found = config_.text().find(key);
    return found == config_.text().end() || found->is_null() ? 1 : number(*found, key);
  }
  template <std::size_t N>
  std::array<double, N> several(std::string_view key) const {
    std::array<double, N> factors;
    factors.fill(1);
    const auto found = config_.text().find(key);
    if (found == config_.text().end() || found->is_null()) return factors;
    if (!found->is_array() || found->size() != N)
      throw Error::input(fmt::format("{} is not a list of {}", key, N)).in(config_.source());
    for (std::size_t i = 0; i < N; ++i) factors[i] = number((*found)[i], key);
    return factors;
  }

 private:
  double number(const ParsedJson& value, std::string_view key) const {
    if (!value.is_number())
      throw Error::input(fmt::format("{} is not made of numbers", key)).in(config_.source());
    return value.get<double>();
  }
  const ModelConfig& config_;
};

std::unique_ptr<LanguageModel> make_falcon_h1(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  const Multipliers of(weights.config());
  DecoderForm form = {.recurrent = {.scan = options.scan, .activation = activation_of(weights)}};
  read_step_limits(weights.config(), form.recurrent);
  const ParsedJson& config = weights.config().text();
  const auto before = config.find("mamba_norm_before_gate");
  form.recurrent.gate_first = before != config.end() && *before == false;
  form.recurrent.input_scale = of.one("ssm_in_multiplier");
  form.recurrent.part_scales = of.several<5>("ssm_multipliers");
  form.attention.key_scale = of.one("key_multiplier");
  const auto mlp = of.several<2>("mlp_multipliers");
  form.scales = {.attention_in = of.one("attention_in_multiplier"),
                 .attention_out = of.one("attention_out_multiplier"),
                 .recurrent_out = of.one("ssm_out_multiplier"),
                 .mlp_gate = mlp[0],
                 .mlp_down = mlp[1]};
  return make_decoder(weights, form);
}

constexpr std::string_view kFalconH1Families[] = {"falcon_h1"};
constexpr auto kFalconH1Used = decoder_keys({"num_key_value_heads",
                                             "hidden_act",
                                             "head_dim",
                                             "attention_bias",
                                             "mlp_bias",
                                             "projectors_bias",
                                             "mamba_d_ssm",
                                             "mamba_n_heads",
                                             "mamba_d_head",
                                             "mamba_n_groups",
                                             "mamba_d_state",
                                             "mamba_d_conv",
                                             "mamba_expand",
                                             "mamba_conv_bias",
                                             "mamba_proj_bias",
                                             "mamba_rms_norm",
                                             "mamba_norm_before_gate",
                                             "time_step_limit",
                                             "embedding_multiplier",
                                             "lm_head_multiplier",
                                             "mlp_multipliers",
                                             "key_multiplier",
                                             "attention_in_multiplier",
                                             "attention_out_multiplier",
                                             "ssm_in_multiplier",
                                             "ssm_out_multiplier",
                                             "ssm_multipliers"});
constexpr std::string_view kFalconH1Idle[] = {"mamba_chunk_size",   "num_logits_to_keep", "mamba_use_mlp",
                                              "attn_layer_indices", "layers_block_type",  "layer_types"};

}  // namespace

const ModelRule kFalconH1Rule = {kFalconH1Families, {}, {kFalconH1Used, kFalconH1Idle}, make_falcon_h1};

}  // namespace assay
