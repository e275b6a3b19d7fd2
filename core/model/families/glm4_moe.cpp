// GLM-4.5, 4.6 and their Air: grouped attention with partly rotated heads, DeepSeek-V3's experts and MTP
// layer.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/seeing_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

struct GlmMoeDefaults {
  bool attention_bias = false;
  std::uint64_t vocabulary = 151552, mtp_layers = 1;
};
// The class rounds down where the hidden size does not divide; its own defaults do not.
std::optional<std::uint64_t> rounded_head(ConfigReader& config) {
  const std::uint64_t hidden = config.size("hidden_size", 4096).value(),
                      heads = config.size("num_attention_heads", 96).value();
  if (hidden < heads || hidden % heads == 0) return std::nullopt;
  return hidden / heads;
}

void describe_glm_moe(ConfigReader& config, ModuleTree& tree, const GlmMoeDefaults& defaults) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = defaults.vocabulary,
                                  .hidden = 4096,
                                  .intermediate = 10944,
                                  .layers = 46,
                                  .heads = 96,
                                  .kv_heads = 8,
                                  .head_dim = rounded_head(config)});
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("attention_bias", defaults.attention_bias);
  if (config.flag("use_qk_norm", false)) a.qk_norm = QkNorm::per_head;
  const Quantity width = config.size("moe_intermediate_size", 1408);
  const std::uint64_t shared = config.number("n_shared_experts", 1);
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", 128, "num_experts_per_tok", 8),
            width};
  m.correction = "gate.e_score_correction_bias";
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * width;
  const std::uint64_t dense_first = config.number("first_k_dense_replace", 1);

  Module dense = layers("model.layers.{layer}", "dense layers",
                        layers_where(d.layers, [&](std::uint64_t i) { return i < dense_first; }));
  add_pre_norms(dense, d.hidden);
  dense.children = {attention(a), gated_mlp(d.mlp())};
  Module sparse = layers("model.layers.{layer}", "MoE layers",
                         layers_where(d.layers, [&](std::uint64_t i) { return i >= dense_first; }));
  add_pre_norms(sparse, d.hidden);
  sparse.children = {attention(a), mixture(m)};
  add_frame(tree, d, {dense, sparse});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));

  const auto mtp = layers_after(d.layers, read_mtp_layers(config, defaults.mtp_layers));
  if (mtp.empty()) return;
  Module layer = layers("model.layers.{layer}", "", mtp);
  layer.tensors = sparse.tensors;
  layer.children = sparse.children;
  add_mtp(tree, d, std::move(layer), "model.embed_tokens.weight", "lm_head.weight");
  tree.mtp_attention.push_back(geometry(a, mtp));
}

void describe_glm4_moe(ConfigReader& config, ModuleTree& tree) {
  describe_glm_moe(config, tree, {});
}
// The language model of GLM-4.5V and 4.6V with experts: published without MTP layers.
void describe_glm4v_moe_text(ConfigReader& config, ModuleTree& tree) {
  describe_glm_moe(config, tree, {.attention_bias = true, .vocabulary = 151424, .mtp_layers = 0});
}

constexpr std::string_view kGlm4MoeArchitectures[] = {"Glm4MoeForCausalLM"};
constexpr std::string_view kGlm4MoeTypes[] = {"glm4_moe"};
constexpr std::string_view kGlm4vMoeTypes[] = {"glm4v_moe_text"};
constexpr std::string_view kGlm4MoeGguf[] = {"glm4moe"};

}  // namespace

const Family kGlm4Moe = {"glm4_moe",   "GLM-4.5, GLM-4.6", kGlm4MoeArchitectures, kGlm4MoeTypes,
                         kGlm4MoeGguf, describe_glm4_moe,  forward_glm4_moe};
const Family kGlm4vMoeText = {"glm4v_moe_text",        "GLM-4.5V's language model", {}, kGlm4vMoeTypes, {},
                              describe_glm4v_moe_text, forward_glm4v_moe_text};

}  // namespace assay::families
