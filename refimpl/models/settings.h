// Numbers that forward passes need and module trees do not: ε, θ, caps, factors.
#pragma once

#include <optional>
#include <string_view>

#include "core/model/config.h"

namespace assay {

// "rms_norm_eps|layer_norm_epsilon": the first that is there. Throws Error::input where the value is no
// finite number, or outside [least, most].
std::optional<double> config_real(const ModelConfig& config, std::string_view keys, double least = -1e300,
                                  double most = 1e300);
std::string config_text(const ModelConfig& config, std::string_view key, std::string_view otherwise);
bool config_flag(const ModelConfig& config, std::string_view key, bool otherwise);

}  // namespace assay
