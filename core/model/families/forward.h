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
  bool part_of_plain = false;  // … under the plain rule: the stretched ones rotate whole heads then
  std::string_view part_keys = "partial_rotary_factor";
  std::string_view theta_key = "rope_theta";  // outside of rope_parameters
  bool longrope_only = false;                 // and what early releases called "su" or "yarn" is meant by it
};
struct Factor {
  std::string_view key = {};  // "": the class has none
  double otherwise = 1;
};
struct ForwardClass {
  double epsilon = 1e-6;
  RopeClass rope = {};
  std::string_view activation_key = "hidden_act", activation = "silu";
  std::string_view layer_type = {};  // whose rope_parameters, where kinds of layers have their own
  std::string_view epsilon_key = "rms_norm_eps";
  bool rotates = true;       // else positions are learnt, or linear biases; of `rope`, the context counts
  bool interleaved = false;  // elements 2i and 2i + 1 of a head rotate together
  Factor attention_scale = {}, embedding_scale = {}, residual_scale = {};
  Factor head_scale = {}, head_divisor = {};
};

// ε, the activation, one rope for all layers, whose heads rotate in the width of the first layer's (of latent
// attention: in its rotary part).
Hyperparameters read_forward(ConfigReader& config, const ModuleTree& tree, const ForwardClass& of_class);

// A family that is told by its class alone.
template <const ForwardClass& kClass>
Hyperparameters read_as(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kClass);
}

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
