// time_step_limit of Mamba-2's configs: how short and how long a step of the state space may be.
#pragma once

#include "core/model/config.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

// Throws Error::input where it is no pair of numbers; the second may be JSON's Infinity.
void read_step_limits(const ModelConfig& config, RecurrentForm& form);

}  // namespace assay
