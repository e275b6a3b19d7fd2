#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/forward.h"
#include "core/model/families/gemma4.h"

namespace assay::families {
namespace {

constexpr std::size_t kGemma4Context = 131072;

// Of one kind of layers; where the config has no word of ropes, the class's own.
RopeRule gemma4_rope(const ConfigReader& config, std::string_view kind, std::uint64_t head_dim,
                     double theta) {
  const ParsedJson* by_kind = object_in(config, "rope_parameters");
  const bool told = by_kind != nullptr && by_kind->contains(kind);
  RopeRule rule = read_rope(
      config, head_dim,
      {.theta = told ? 10000 : theta, .context = kGemma4Context, .theta_key = "rope_theta_of_all"}, kind);
  if (told || kind != "full_attention") return rule;
  rule.type = RopeRule::Type::proportional;  // a quarter of the pairs
  rule.moving_pairs = head_dim / 8;
  return rule;
}

}  // namespace

Hyperparameters forward_gemma4(ConfigReader& config, const ModuleTree& tree) {
  config.require(config.is_null("use_bidirectional_attention") ||
                     config.text("use_bidirectional_attention", "") != "all",
                 "use_bidirectional_attention is \"all\": attention to what follows is not computed here");
  Hyperparameters h;
  h.epsilon = config.real("rms_norm_eps", 1e-6, 0, 1);
  h.activation_key = "hidden_activation";
  h.activation = config.text("hidden_activation", "gelu_pytorch_tanh");
  h.context = read_context(config, kGemma4Context);
  h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  h.attention_scale = 1;
  if (!config.is_null("final_logit_softcapping"))
    h.final_cap = config.real("final_logit_softcapping", 0, 1e-3, 1e6);
  h.routing.renormalize = true;
  h.rope_of.assign(tree.layers, std::nullopt);
  for (const bool windowed : {false, true}) {
    std::optional<std::size_t> rope;  // of this kind, once there is one
    for (const AttentionGeometry& g : tree.attention) {
      if ((g.window != 0) != windowed) continue;
      if (!rope) {
        rope = h.ropes.size();
        h.ropes.push_back(windowed ? gemma4_rope(config, "sliding_attention", g.qk_head_dim, 10000)
                                   : gemma4_rope(config, "full_attention", g.qk_head_dim, 1e6));
      }
      for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = rope;
    }
  }
  return h;
}

}  // namespace assay::families
