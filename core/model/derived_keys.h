// What the config of an architecture that nobody has described says all the same: counts, under the names that configs
// have for them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "core/model/config.h"

namespace assay {

struct ToldCount {
  std::string key;
  std::uint64_t count = 0;
};

// The first of `keys` that is a count, or a list of one count over and over; "ffn_config.moe_top_k" is within an object.
std::optional<ToldCount> told_count(const ModelConfig& config, std::initializer_list<const char*> keys);

std::optional<ToldCount> told_layers(const ModelConfig& config);
std::optional<ToldCount> told_experts(const ModelConfig& config);
// Of so many; a larger number counts something else.
std::optional<ToldCount> told_experts_per_token(const ModelConfig& config, std::uint64_t experts);

}  // namespace assay
