// The names of Mistral's own files (consolidated.safetensors), which all of its models share.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

inline const blocks::Frame kMistralFrame = {
    .embedding = "tok_embeddings", .final_norm = "norm", .head = "output"};

// w1 is the gate, w3 up, w2 down.
blocks::GatedMlp mistral_mlp(const Quantity& hidden, const Quantity& width);
void add_mistral_norms(Module& layer, const Quantity& hidden);

// The encoder of images, its norm, merger of patches and projector, where the config has a vision_config: the object
// that params.json calls vision_encoder. Source: mistral-inference 1.6, vision_encoder.py.
void add_mistral_native_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);

}  // namespace assay::families
