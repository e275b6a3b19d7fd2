// What the tables of families told by their forms share.
#pragma once

#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {

// llama.cpp changes the order of rows in families of its own choice; these are read from safetensors only.
inline void require_safetensors(const Weights& weights) {
  if (weights.from_gguf())
    throw Error::input(fmt::format("{} is computed from safetensors only", weights.tree().title))
        .in(weights.config().source());
}

// Where heads are mixed with each other, or their norms' weights lie in one row, a rank cannot have some of them.
inline void require_all_heads(const Weights& weights) {
  const auto heads = [](const ModuleTree& tree) {
    std::uint64_t count = 0;
    for (const AttentionGeometry& g : tree.attention) count += g.heads;
    for (const RecurrentGeometry& g : tree.recurrent) count += g.heads;
    return count;
  };
  if (heads(weights.tree()) != heads(weights.whole_tree()))
    throw Error::input(fmt::format("heads of {} cannot be cut over ranks", weights.tree().title))
        .in(weights.config().source());
}

inline std::unique_ptr<LanguageModel> make_kin_as(DecoderForm form, const Weights& weights,
                                                  const ModelOptions& options) {
  require_safetensors(weights);
  form.moe = options.moe;
  return make_decoder(weights, form);
}
template <const DecoderForm& kForm>
std::unique_ptr<LanguageModel> make_kin(const Weights& weights, const ModelOptions& options) {
  return make_kin_as(kForm, weights, options);
}

template <const DecoderForm& kForm>
std::unique_ptr<LanguageModel> make_whole_kin(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  return make_kin_as(kForm, weights, options);
}

// A list of the config with a number for each layer, where gates and ups are cut off (DecoderForm::expert_limits); null and 0: nowhere.
// Empty: there is none.
std::vector<double> limits_of(const ModelConfig& config, std::string_view key);

// used, of every class here with rotary positions.
inline constexpr std::string_view kKinKeys[] = {
    "vocab_size",          "hidden_size",  "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "hidden_act",   "max_position_embeddings", "original_max_position_embeddings",
    "rope_theta",          "rope_scaling", "rope_parameters",         "tie_word_embeddings"};
template <std::size_t N>
constexpr auto kin_keys(const std::string_view (&more)[N]) {
  std::array<std::string_view, std::size(kKinKeys) + N> all;
  for (std::size_t i = 0; i < std::size(kKinKeys); ++i) all[i] = kKinKeys[i];
  for (std::size_t i = 0; i < N; ++i) all[std::size(kKinKeys) + i] = more[i];
  return all;
}

}  // namespace assay
