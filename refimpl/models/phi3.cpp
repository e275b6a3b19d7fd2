// Phi-3, Phi-3.5, Phi-4 (arXiv 2404.14219): q, k and v are one matrix, gate and up another. Long-context
// releases rotate by longrope; Phi-4-mini rotates 3/4 of a head only.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_phi3(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, {});
}

constexpr std::string_view kPhi3Families[] = {"phi3"};
constexpr auto kPhi3Used = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_act", "sliding_window", "partial_rotary_factor"});
// Of Microsoft's own code, and always off: the class has no such biases.
constexpr std::string_view kPhi3Idle[] = {"attention_bias"};

}  // namespace

const ModelRule kPhi3Rule = {kPhi3Families, {}, {kPhi3Used, kPhi3Idle}, make_phi3};

}  // namespace assay
