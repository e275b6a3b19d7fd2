#include "core/model/families/early_forward.h"

#include <cmath>

#include "core/model/families/forward.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

// Of fairseq's decoders: nn.LayerNorm's own epsilon, whatever the config says.
constexpr ForwardClass kBiogptClass = {
    .epsilon = 1e-5, .rope = {.context = 1024}, .activation = "gelu", .epsilon_key = {}, .rotates = false};
constexpr ForwardClass kXglmClass = {.epsilon = 1e-5,
                                     .rope = {.context = 2048},
                                     .activation_key = "activation_function",
                                     .activation = "gelu",
                                     .epsilon_key = {},
                                     .rotates = false};
constexpr ForwardClass kCtrlClass = {.epsilon = 1e-6,
                                     .rope = {.context = 256},
                                     .activation_key = {},
                                     .activation = "relu",
                                     .epsilon_key = "layer_norm_epsilon",
                                     .rotates = false};
constexpr ForwardClass kGptNeoClass = {.epsilon = 1e-5,
                                       .rope = {.context = 2048},
                                       .activation_key = "activation_function",
                                       .activation = "gelu_new",
                                       .epsilon_key = "layer_norm_epsilon",
                                       .rotates = false};
constexpr ForwardClass kJapaneseClass = {.epsilon = 1e-5,
                                         .rope = {.context = 2048,
                                                  .partial = true,
                                                  .part = 1,
                                                  .part_keys = "rotary_pct",
                                                  .theta_key = "rotary_emb_base"},
                                         .activation = "gelu",
                                         .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kOpenaiClass = {.epsilon = 1e-5,
                                       .rope = {.context = 512},
                                       .activation_key = "afn",
                                       .activation = "gelu",
                                       .epsilon_key = "layer_norm_epsilon",
                                       .rotates = false};

constexpr std::size_t kLongestTable = 1 << 20;  // of positions that are sines, and made here

double root_of_width(const ModuleTree& tree) {
  return std::sqrt(static_cast<double>(tree.hidden_size));
}
void require_table(ConfigReader& config, const Hyperparameters& h, const ModuleTree& tree) {
  config.require(h.context <= kLongestTable, "max_position_embeddings (n_positions) is absurdly long");
  config.require(tree.hidden_size >= 4, "hidden_size is too small for sines of positions");
}

}  // namespace

Hyperparameters forward_biogpt(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kBiogptClass);
  if (config.flag("scale_embedding", true)) h.embedding_scale = root_of_width(tree);
  return h;
}
Hyperparameters forward_codegen(ConfigReader& config, const ModuleTree& tree) {
  config.require(tree.attention.at(0).heads % 4 == 0,
                 "num_attention_heads is no multiple of 4, in which groups the class has them");
  return forward_gptj(config, tree);
}
Hyperparameters forward_ctrl(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kCtrlClass);
  require_table(config, h, tree);
  h.embedding_scale = root_of_width(tree);
  return h;
}
// Scores are not scaled.
Hyperparameters forward_gpt_neo(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGptNeoClass);
  h.attention_scale = 1;
  return h;
}
Hyperparameters forward_neox_japanese(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kJapaneseClass);
}
// By "gelu" its class means gelu_new, and it knows few others.
Hyperparameters forward_openai_gpt(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kOpenaiClass);
  config.require(
      h.activation == "gelu" || h.activation == "relu" || h.activation == "silu" || h.activation == "swish",
      "afn is none of relu, silu, gelu and swish");
  if (h.activation == "gelu") h.activation = "gelu_new";
  return h;
}
Hyperparameters forward_xglm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kXglmClass);
  require_table(config, h, tree);
  if (config.flag("scale_embedding", true)) h.embedding_scale = root_of_width(tree);
  return h;
}

}  // namespace assay::families
