// What becomes of each key of a config.json when the model is run. Every one is
//
//   used        by the module tree or the forward rule, as the class of transformers uses it;
//   idle        of no effect on what this class computes, or on what any class computes (training,
//   generation,
//               bookkeeping);
//   fixed       a switch of the class whose other positions are not computed here: an error that names it;
//   or unread   neither the class nor the rule looks at it: a note.
//
// data/make_config_keys.py asks transformers what its classes read; the test ConfigKeys holds both lists
// against each other.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/known_keys.h"

namespace assay {

// used, of every decoder with rotary positions.
inline constexpr std::string_view kDecoderKeys[] = {
    "vocab_size",          "hidden_size",  "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "rms_norm_eps", "max_position_embeddings", "original_max_position_embeddings",
    "rope_theta",          "rope_scaling", "rope_parameters",         "tie_word_embeddings"};

// kDecoderKeys and those a family adds, in one constant list.
template <std::size_t N>
constexpr std::array<std::string_view, std::size(kDecoderKeys) + N> decoder_keys(
    const std::string_view (&more)[N]) {
  std::array<std::string_view, std::size(kDecoderKeys) + N> all;
  for (std::size_t i = 0; i < std::size(kDecoderKeys); ++i) all[i] = kDecoderKeys[i];
  for (std::size_t i = 0; i < N; ++i) all[std::size(kDecoderKeys) + i] = more[i];
  return all;
}

// Of no effect, whatever the family.
bool is_idle_everywhere(std::string_view key);
// Switches that any class may have.
std::span<const FixedKey> fixed_everywhere();

// Throws Error::input for a fixed key with another value.
void require_fixed_keys(const ModelConfig& config, const ConfigKeys& keys);
// The unread ones, nested ones of rope_scaling as "rope_scaling.alpha"; in order, without those that are null
// or empty. None of a GGUF, whose metadata were renamed.
std::vector<std::string> unread_keys(const ModelConfig& config, const ConfigKeys& keys);

}  // namespace assay
