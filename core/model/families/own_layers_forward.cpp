// Sources: the configuration classes of transformers 5.19.
#include "core/model/families/own_layers_forward.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/model/families/forward.h"

namespace assay::families {

Hyperparameters forward_doge(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {});
}

Hyperparameters forward_jetmoe(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 4096}, .activation_key = "activation_function"});
}

// A state has no end; context_length is how long the texts of training were.
Hyperparameters forward_rwkv(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree,
      {.epsilon = 1e-5, .activation_key = {}, .epsilon_key = "layer_norm_epsilon", .rotates = false});
  h.context = std::size_t{1} << 20U;
  return h;
}

Hyperparameters forward_xlstm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.activation_key = {}, .epsilon_key = "norm_eps", .rotates = false});
  h.context = std::size_t{1} << 20U;
  h.final_cap = config.real("output_logit_soft_cap", 30, 1e-6, 1e9);
  return h;
}

// Nothing rotates: the state spaces tell where a token stands.
Hyperparameters forward_zamba(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree,
                      {.epsilon = 1e-5, .rope = {.context = 4096}, .activation = "gelu", .rotates = false});
}

// Layers with a window rotate by a base of their own; of a head one half, unless rope_parameters are given and do not say so.
Hyperparameters forward_zaya(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kClass = {
      .epsilon = 1e-5, .rope = {.context = 131072}, .activation = "silu", .rotates = false};
  Hyperparameters h = read_forward(config, tree, kClass);
  const ParsedJson* given = object_in(config, "rope_parameters");
  const bool told = given != nullptr && !given->empty();
  for (const bool window : {false, true}) {
    RopeClass of_class = {.theta = window ? 1e4 : 5e6, .context = 131072, .partial = true};
    if (!told) of_class.part = 0.5;
    const char* kind = window ? "hybrid_sliding" : "hybrid";
    for (const AttentionGeometry& g : tree.attention) {
      if ((g.window != 0) != window) continue;
      config.require(!told || given->contains(kind), std::string("rope_parameters has no ") + kind);
      h.ropes.push_back(read_rope(config, g.qk_head_dim, of_class, kind));
      for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = h.ropes.size() - 1;
    }
  }
  return h;
}

}  // namespace assay::families
