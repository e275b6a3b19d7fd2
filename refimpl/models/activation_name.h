// The activation a config names, in the words of transformers (activations.py, ACT2FN).
#pragma once

#include <string_view>

#include "core/model/config.h"
#include "refimpl/ops/interface.h"

namespace assay {

// hidden_act and its kin; "" of a class that reads none. Throws Error::input naming the key for a function
// that no operation here computes.
Activation read_activation(const ModelConfig& config, std::string_view key, std::string_view class_default);

}  // namespace assay
