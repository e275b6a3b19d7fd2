// per_layer_config, in which single layers have sizes of their own: {"02": {…}, "5": {…}}, by the layer's number.
#pragma once

#include <cstddef>
#include <functional>

#include "core/model/config.h"

namespace assay::families {

// Visits what is told of layers; false: the config tells nothing of them. Error::input where an entry names none of
// `count` layers, or is no object.
bool visit_told_layers(const ConfigReader& config, std::size_t count,
                       const std::function<void(std::size_t layer, const ModelConfig& own)>& visit);

}  // namespace assay::families
