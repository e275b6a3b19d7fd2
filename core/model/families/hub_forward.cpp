// Sources: the code that is published beside the weights, whose classes' defaults these are.
#include "core/model/families/hub_forward.h"

#include "core/model/families/forward.h"

namespace assay::families {

// Qwen2's defaults, whose configuration class it takes.
Hyperparameters forward_bagel(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 32768}});
}

Hyperparameters forward_minimind(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.theta = 1e6, .context = 32768}});
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}

// No key tells ε; frequencies are computed for as many positions as a text has, whatever rope_max_length says.
Hyperparameters forward_openelm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree,
                                   {.rope = {.theta_key = "rope_freq_constant"},
                                    .activation_key = "activation_fn_name",
                                    .activation = "swish"});
  h.context = config.size("max_context_length", 2048).value();
  return h;
}

}  // namespace assay::families
