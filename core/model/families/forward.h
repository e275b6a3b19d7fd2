// Reading Hyperparameters: what every family with a forward rule reads alike, with its class's own defaults.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/model/config.h"
#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

// What the class of transformers has where the config is silent, and which keys it reads at all.
struct RopeClass {
  double theta = 10000;
  std::size_t context = 2048;                        // max_position_embeddings
  std::optional<std::size_t> original_context = {};  // of the class itself: it counts before rope_scaling's
  bool partial = false;        // partial_rotary_factor is read; GGUF's metadata always count
  double part = 1;             // … and what it is where nothing says so
  bool longrope_only = false;  // and what early releases called "su" or "yarn" is meant by it
};
struct ForwardClass {
  double epsilon = 1e-6;
  RopeClass rope = {};
  std::string_view activation_key = "hidden_act", activation = "silu";
  std::string_view layer_type = {};  // whose rope_parameters, where kinds of layers have their own
};

// ε, the activation, one rope for all layers, whose heads rotate in the width of the first layer's (of latent
// attention: in its rotary part).
Hyperparameters read_forward(ConfigReader& config, const ModuleTree& tree, const ForwardClass& of_class);

// rope_theta, rope_scaling or rope_parameters, partial_rotary_factor, max_position_embeddings; `layer_type`
// picks one of several rope_parameters ("sliding_attention"; "" where there is one only). `head_dim` is the
// part that may rotate. Throws Error::input on an unknown type or absurd numbers.
RopeRule read_rope(const ConfigReader& config, std::size_t head_dim, const RopeClass& of_class,
                   std::string_view layer_type = {});
// max_position_embeddings, n_positions.
std::size_t read_context(const ConfigReader& config, std::size_t class_default);
// An object of the config; nullptr: none. Throws Error::input where the key is something else.
const ParsedJson* object_in(const ConfigReader& config, std::string_view key);

inline bool is_gguf(const ConfigReader& config) {
  return config.config().origin() == ModelConfig::Origin::gguf;
}

}  // namespace assay::families
