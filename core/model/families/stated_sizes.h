// Of decoders whose configuration class is not at hand: a config must say its sizes, and no default is taken.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

inline constexpr blocks::DecoderDefaults kStatedSizes = {
    .vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0};

// Throws Error::input where one of those that every decoder has is not there.
inline void require_stated(ConfigReader& config) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
}

}  // namespace assay::families
