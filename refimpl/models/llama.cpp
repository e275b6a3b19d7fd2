// Llama 1 to 3, Yi, Mistral: the plain decoder. Their GGUFs hold q and k with rows in interleaved order.
#include <array>

#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_llama(const Weights& weights, const ModelOptions& options) {
  DecoderSettings settings = read_decoder_settings(weights, 1e-6, 10000);
  if (weights.from_gguf()) settings.rope_layout = RopeLayout::interleaved;
  settings.moe = options.moe;
  return make_decoder(weights, settings);
}

constexpr std::array<std::string_view, 3> kFamilies = {"llama", "yi", "mistral"};

}  // namespace

const ModelRule kLlamaRule = {kFamilies, {}, make_llama};

}  // namespace assay
