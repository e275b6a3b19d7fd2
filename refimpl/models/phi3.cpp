// Phi-3, Phi-3.5, Phi-4 (arXiv 2404.14219): q, k and v are one matrix, gate and up another. Long-context
// releases turn by longrope; Phi-4-mini turns 3/4 of a head only.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_phi3(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, read_decoder_settings(weights, 1e-5, 10000));
}

constexpr std::string_view kFamilies[] = {"phi3"};

}  // namespace

const ModelRule kPhi3Rule = {kFamilies, {}, make_phi3};

}  // namespace assay
