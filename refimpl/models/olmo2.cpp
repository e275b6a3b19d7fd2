// OLMo-2 (arXiv 2501.00656): norms stand after attention and MLP, none before; q and k are normed over all
// heads at once.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_olmo2(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, {.norm = NormForm::weight_inside});
}

constexpr std::string_view kOlmo2Families[] = {"olmo2"};
constexpr auto kOlmo2Used = decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias"});

}  // namespace

const ModelRule kOlmo2Rule = {kOlmo2Families, {}, {kOlmo2Used}, make_olmo2};

}  // namespace assay
