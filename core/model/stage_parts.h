// Which stage of a pipeline has what stands outside the layers.
#pragma once

#include <string>

#include "core/model/module_tree.h"

namespace assay {

// It makes what enters the first layer, and lies in the first stage; else it stands behind the last one.
inline bool feeds_first_layer(const TensorSpec& spec) {
  switch (spec.role) {
    case Role::token_embedding:
    case Role::position_embedding:
    case Role::embedding_norm:
    case Role::per_layer_embedding: return true;
    // Gemma 3n makes streams of one, and behind the last layer one of them ("altup_unembed_projections").
    case Role::residual_mix: return spec.name.find("altup_projections") != std::string::npos;
    default: return false;
  }
}

}  // namespace assay
