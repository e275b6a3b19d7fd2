// Qwen2 (biases on q, k and v) and Qwen3 (norms of each head of q and k, before rope).
#include <array>

#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_qwen(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, read_decoder_settings(weights, 1e-6, 10000));
}

constexpr std::array<std::string_view, 2> kFamilies = {"qwen2", "qwen3"};

}  // namespace

const ModelRule kQwenRule = {kFamilies, {}, make_qwen};

}  // namespace assay
