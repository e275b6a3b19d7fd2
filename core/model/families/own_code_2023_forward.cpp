// Sources: the modeling code that is published beside the weights (modeling_qwen.py, modeling_chatglm.py), and vLLM 0.32's
// classes of the same models (qwen.py, chatglm.py).
#include "core/model/families/own_code_2023_forward.h"

#include <algorithm>

#include "core/model/families/forward.h"

namespace assay::families {
namespace {

// seq_length: how long a text is for which positions are as they were trained.
void end_at(ConfigReader& config, std::size_t otherwise, Hyperparameters& h) {
  h.context = static_cast<std::size_t>(
      config.real("seq_length|max_position_embeddings", static_cast<double>(otherwise), 1, 1e9));
  for (RopeRule& rule : h.ropes) rule.context = rule.original_context = h.context;
}

}  // namespace

// Half of each head rotates, in pairs of neighbours; a longer context stretches the base by rope_ratio.
Hyperparameters forward_chatglm(ConfigReader& config, const ModuleTree& tree) {
  const double ratio = config.is_null("rope_ratio") ? 1 : config.real("rope_ratio", 1, 1e-6, 1e9);
  Hyperparameters h =
      read_forward(config, tree,
                   {.epsilon = 1e-5,
                    .rope = {.theta = 10000 * ratio, .context = 2048, .partial = true, .part = 0.5},
                    .activation_key = {},
                    .epsilon_key = "layernorm_epsilon|rms_norm_eps",
                    .interleaved = true});
  end_at(config, 2048, h);
  return h;
}

// Behind seq_length the class stretches rotations (use_dynamic_ntk) and lengthens queries (use_logn_attn), by how long the text
// is when it reads it: such texts are not computed. Without either they are.
Hyperparameters forward_qwen1(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree,
                                   {.epsilon = 1e-6,
                                    .rope = {.context = 8192, .theta_key = "rotary_emb_base|rope_theta"},
                                    .activation_key = {},
                                    .epsilon_key = "layer_norm_epsilon|rms_norm_eps"});
  const bool bends = config.flag("use_dynamic_ntk", true) || config.flag("use_logn_attn", true);
  if (bends) end_at(config, 8192, h);
  return h;
}

}  // namespace assay::families
