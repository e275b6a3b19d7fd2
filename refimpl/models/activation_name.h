// The activation a config names, in the words of transformers (activations.py, ACT2FN).
#pragma once

#include "core/model/config.h"
#include "core/model/hyperparameters.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

// Throws Error::input naming the key for a function that no operation here computes.
Activation activation_of(const Hyperparameters& h, const ModelConfig& config);
Activation activation_of(const Weights& weights);

}  // namespace assay
