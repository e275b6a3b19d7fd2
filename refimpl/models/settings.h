// Numbers that forward passes need and module trees do not: ε, θ, caps, factors.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/config.h"

namespace assay {

inline constexpr double kAnyReal = 1e300;

// "rms_norm_eps|layer_norm_epsilon": the first that is there. Throws Error::input where the value is no
// finite number, or outside [least, most].
std::optional<double> config_real(const ModelConfig& config, std::string_view keys, double least = -kAnyReal,
                                  double most = kAnyReal);
double json_real(const ParsedJson& value, std::string_view key, const std::filesystem::path& source,
                 double least = -kAnyReal, double most = kAnyReal);
std::string config_text(const ModelConfig& config, std::string_view key, std::string_view otherwise);
bool config_flag(const ModelConfig& config, std::string_view key, bool otherwise);
bool config_is_null(const ModelConfig& config, std::string_view key);              // there, and null
const ParsedJson* config_object(const ModelConfig& config, std::string_view key);  // nullptr: none

}  // namespace assay
