// What Gemma 3n and 4 have in common: an embedding of each layer's own.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

void add_whole_linear(Module& module, const std::string& name, const Quantity& in, const Quantity& out,
                      Role role, Part part = Part::dense_mlp);  // which no rank cuts

// Of all layers: a table with a row for each token, and the projection that joins it; `width` a layer.
Module per_layer_inputs(const std::string& path, ConfigReader& config, const blocks::Decoder& d,
                        const Quantity& width);
// What a layer does with its own.
Module per_layer_step(const Quantity& hidden, const Quantity& width);

}  // namespace assay::families
