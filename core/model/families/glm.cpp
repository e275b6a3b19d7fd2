// GLM-4 as transformers has it (GlmForCausalLM, Glm4ForCausalLM): biased q, k, v; gate and up in one matrix.
// The 2025 models (Glm4) norm the outputs of attention and MLP too.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/seeing_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_with(ConfigReader& config, ModuleTree& tree, bool output_norms,
                   std::optional<std::uint64_t> head_dim = 128) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151552,
                                  .hidden = 4096,
                                  .intermediate = 13696,
                                  .layers = 40,
                                  .heads = 32,
                                  .kv_heads = 2,
                                  .head_dim = head_dim});
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("attention_bias", true);
  GatedMlp mlp = d.mlp();
  mlp.fused = "gate_up_proj";
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  if (output_norms) {
    add_norm(layer, "post_self_attn_layernorm", d.hidden, Role::post_attention_norm);
    add_norm(layer, "post_mlp_layernorm", d.hidden, Role::post_feedforward_norm);
  }
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_glm(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, false);
}
void describe_glm4(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, true);
}

// The language model of GLM-4.1V to 4.6V; positions of images apart it is GLM-4-0414.
void describe_glm4v_text(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, true, std::nullopt);
}

constexpr std::string_view kGlmArchitectures[] = {"GlmForCausalLM"};
constexpr std::string_view kGlmTypes[] = {"glm"};
constexpr std::string_view kGlm4Architectures[] = {"Glm4ForCausalLM"};
constexpr std::string_view kGlm4Types[] = {"glm4"};
constexpr std::string_view kGlm4vTextTypes[] = {"glm4v_text"};

}  // namespace

const Family kGlm = {"glm", "GLM-4 (transformers)", kGlmArchitectures, kGlmTypes,
                     {},    describe_glm,           forward_glm};
const Family kGlm4 = {"glm4",     "GLM-4-0414",  kGlm4Architectures, kGlm4Types,
                      kGlm4Types, describe_glm4, forward_glm};
const Family kGlm4vText = {"glm4v_text",        "GLM-4V's language model", {}, kGlm4vTextTypes, {},
                           describe_glm4v_text, forward_glm4v_text};

}  // namespace assay::families
