// Qwen2 (biases on q, k and v) and Qwen3 (norms of each head of q and k, before rope).
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_qwen(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, {});
}

constexpr std::string_view kQwen2Families[] = {"qwen2"};
constexpr auto kQwen2Used =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "use_sliding_window", "sliding_window",
                  "max_window_layers", "layer_types"});
constexpr std::string_view kQwen3Families[] = {"qwen3"};
constexpr auto kQwen3Used =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "use_sliding_window",
                  "sliding_window", "max_window_layers", "layer_types"});

}  // namespace

const ModelRule kQwen2Rule = {kQwen2Families, {}, {kQwen2Used}, make_qwen};
const ModelRule kQwen3Rule = {kQwen3Families, {}, {kQwen3Used}, make_qwen};

}  // namespace assay
