// Mistral Large 4: DeepSeek's decoder (deepseek.cpp), some of whose layers rotate nothing, and some attend to another's latents
// by what an indexer of theirs or of a layer before them chose.
#include "refimpl/models/deepseek.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_mistral_large4(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Mistral Large 4");
  const auto sources = config.numbers("kv_source_layers").value_or(std::vector<std::uint64_t>{});
  return make_deepseek(weights, options,
                       {.index_layout = RopeLayout::interleaved,
                        .softmax_router = true,
                        .latents_as_others = true,
                        .router_in_float32 = true,
                        .kv_sources = sources});
}

constexpr std::string_view kLarge4Families[] = {"mistral_large4"};
constexpr auto kLarge4Used =
    decoder_keys({"hidden_act", "attention_bias", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                  "v_head_dim", "mlp_layer_types", "num_experts", "num_local_experts", "indexer_types",
                  "index_topk_pattern", "index_topk_freq", "index_skip_topk_offset", "no_rope_layers",
                  "no_rope_layer_interval", "kv_source_layers", "final_logit_softcapping"},
                 kDeepseekMixtureKeys, kIndexerKeys);
constexpr std::string_view kLarge4Idle[] = {"head_dim", "qk_head_dim", "num_key_value_heads", "layer_types"};

}  // namespace

const ModelRule kMistralLarge4Rule = {kLarge4Families, {}, {kLarge4Used, kLarge4Idle}, make_mistral_large4};

}  // namespace assay
