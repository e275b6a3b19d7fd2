// Gemma 2 (arXiv 2408.00118) and Gemma 3 (arXiv 2503.19786): norms before and after attention and MLP, whose
// weight counts as 1 + w; embeddings × √hidden; GELU. Gemma 2 caps scores and logits; Gemma 3 norms q and k
// instead of capping scores (its class reads attn_logit_softcapping and leaves it at that), and its layers
// with a window rotate with a base of their own, unstretched.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_gemma(const Weights& weights, const ModelOptions& options) {
  // The converter to GGUF has added the 1 already.
  return make_decoder(weights,
                      {.norm = weights.from_gguf() ? NormForm::weight_inside : NormForm::one_plus_weight,
                       .rounded_embedding_scale = true,
                       .moe = options.moe});
}

constexpr std::string_view kGemma2Families[] = {"gemma2"};
constexpr auto kGemma2Used = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_activation", "attention_bias", "query_pre_attn_scalar",
     "attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "layer_types"});
constexpr std::string_view kGemma3Families[] = {"gemma3"};
constexpr auto kGemma3Used =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_activation", "attention_bias",
                  "query_pre_attn_scalar", "final_logit_softcapping", "sliding_window", "layer_types",
                  "sliding_window_pattern", "_sliding_window_pattern", "rope_local_base_freq"});
// hidden_activation took hidden_act's place; sliding_window_size is published beside sliding_window.
constexpr std::string_view kGemma2Idle[] = {"hidden_act", "sliding_window_size"};
constexpr std::string_view kGemma3Idle[] = {"hidden_act", "attn_logit_softcapping"};
constexpr FixedKey kGemmaFixed[] = {{"use_bidirectional_attention", "false"}};

}  // namespace

const ModelRule kGemma2Rule = {kGemma2Families, {}, {kGemma2Used, kGemma2Idle, kGemmaFixed}, make_gemma};
const ModelRule kGemma3Rule = {kGemma3Families, {}, {kGemma3Used, kGemma3Idle, kGemmaFixed}, make_gemma};

}  // namespace assay
