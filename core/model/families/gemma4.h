// Gemma 4 and its kin: what their configs describe, and what their forward passes read.
#pragma once

#include "core/model/blocks.h"
#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

// What the classes differ in.
struct Gemma4Kin {
  std::uint64_t per_layer;  // hidden_size_per_layer_input where the config is silent; 0: the class has none
  std::uint64_t window;     // sliding_window, likewise
  void (*add_towers)(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);
  // Of the language model's names; "": by whether it is nested.
  std::string_view prefix = {};
  // Keys are values where a layer sees all, and every layer has experts, whatever the config says (diffusion_gemma.cpp).
  bool diffuses = false;
  bool assistant = false;  // all layers read the cache of another model (assistants.cpp)
};
void describe_gemma4_kin(ConfigReader& config, ModuleTree& tree, const Gemma4Kin& kin);

Hyperparameters forward_gemma4(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
