// Decoders that are told as towers: of the codes within a frame, or of what a model says aloud. No token of text meets them.
#pragma once

#include <string>

#include "core/model/blocks.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

// Its sizes, by the keys that every Llama has. intermediate 0: the key is not asked for.
blocks::Decoder read_small_decoder(ConfigReader& config, const blocks::DecoderDefaults& of);

struct SmallLayers {
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;  // of each head's q and k
};
// attention_bias is of all four matrices, as a Llama's.
SmallLayers read_small_layers(ConfigReader& config);

// self_attn.q_proj to o_proj; path.gate_proj, up_proj, down_proj.
void add_small_attention(blocks::Tower& layer, const blocks::Decoder& d, const SmallLayers& of);
void add_small_mlp(blocks::Tower& layer, const std::string& path, const Quantity& hidden,
                   const Quantity& wide, bool bias = false);
// input_layernorm, post_attention_layernorm, RMSNorms both.
void add_small_norms(blocks::Tower& layer, const Quantity& hidden);
Module small_llama(const blocks::Decoder& d, std::string path, const SmallLayers& of);

}  // namespace assay::families
