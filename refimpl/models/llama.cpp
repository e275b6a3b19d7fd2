// Llama 1 to 3, Yi, Mistral: the plain decoder.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_llama(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.moe = options.moe});
}

constexpr std::string_view kLlamaFamilies[] = {"llama", "yi"};
constexpr auto kLlamaUsed =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "mlp_bias"});
constexpr std::string_view kMistralFamilies[] = {"mistral"};
constexpr auto kMistralUsed =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "sliding_window", "layer_types"});

}  // namespace

const ModelRule kLlamaRule = {kLlamaFamilies, {}, {kLlamaUsed}, make_llama};
const ModelRule kMistralRule = {kMistralFamilies, {}, {kMistralUsed}, make_llama};

}  // namespace assay
