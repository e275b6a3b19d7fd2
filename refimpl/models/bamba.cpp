// Bamba (IBM): Mamba-2 in most layers, in the others attention that rotates half of each head; a gated MLP in all.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/step_limits.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_bamba(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = {.recurrent = {.scan = options.scan, .activation = activation_of(weights)}};
  read_step_limits(weights.config(), form.recurrent);
  return make_decoder(weights, form);
}

constexpr std::string_view kBambaFamilies[] = {"bamba"};
constexpr auto kBambaUsed =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "mlp_bias",
                  "attn_layer_indices", "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state",
                  "mamba_d_conv", "mamba_expand", "mamba_conv_bias", "mamba_proj_bias", "time_step_limit"});
// How many tokens a scan takes at once; a loss; how many logits are kept. The class rotates half of a head, whatever
// the config says.
constexpr std::string_view kBambaIdle[] = {
    "mamba_chunk_size", "z_loss_coefficient", "num_logits_to_keep", "partial_rotary_factor",
    "attn_rotary_emb",  "layers_block_type",  "layer_types"};

}  // namespace

const ModelRule kBambaRule = {kBambaFamilies, {}, {kBambaUsed, kBambaIdle}, make_bamba};

}  // namespace assay
