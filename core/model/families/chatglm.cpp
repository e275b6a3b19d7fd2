// ChatGLM2, ChatGLM3 and GLM-4 in their own code (modeling_chatglm.py), whose config has words of its own:
// padded_vocab_size, num_layers, ffn_hidden_size, kv_channels, multi_query_group_num.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/own_code_2023_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

Decoder read_chatglm_sizes(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("padded_vocab_size|vocab_size", 65024);
  d.hidden = config.size("hidden_size", 4096);
  d.intermediate = config.size("ffn_hidden_size|intermediate_size", 13696);
  d.layers = read_layers(config, "num_layers|num_hidden_layers", 28);
  d.heads = config.size("num_attention_heads", 32);
  d.head_dim = config.size("kv_channels|head_dim", 128);
  const bool grouped = config.flag("multi_query_attention", config.has("num_key_value_heads"));
  d.kv_heads = grouped ? config.size("multi_query_group_num|num_key_value_heads", 1) : d.heads;
  d.tied = config.tied_embeddings(false);
  config.require_divides(d.kv_heads, d.heads);
  note_sizes(tree, d);
  return d;
}

void describe_chatglm(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_chatglm_sizes(config, tree);
  const bool bias = config.flag("add_bias_linear", false);
  HeadAttention a = d.attention();
  a.path = "self_attention";
  a.fused = "query_key_value";
  a.o = "dense";
  a.qkv_bias = config.flag("add_qkv_bias|attention_bias", false) || bias;
  a.output_bias = bias;
  GatedMlp mlp = d.mlp();
  mlp.fused = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  mlp.bias = bias;
  config.require(config.flag("rmsnorm", true), "rmsnorm is false: ChatGLM with LayerNorms is not described");
  config.require(config.flag("post_layer_norm", true),
                 "post_layer_norm is false: such a ChatGLM is not described");

  Module layer = layers("transformer.encoder.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.embedding.word_embeddings",
             .final_norm = "transformer.encoder.final_layernorm",
             .head = "transformer.output_layer"});
  // Half of each head rotates, and a frequency serves two of its elements.
  Module rotary{"transformer.rotary_pos_emb", "rotary frequencies", {}, {}, {}};
  add_buffer(rotary, "inv_freq", {std::max<std::uint64_t>(1, d.head_dim.value() / 4)});
  tree.modules.push_back(std::move(rotary));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_eva_vision(config, tree, d.hidden, d.intermediate);  // GLM-4V
}

constexpr std::string_view kChatglmArchitectures[] = {"ChatGLMModel", "ChatGLMForConditionalGeneration",
                                                      "GLM4VForCausalLM"};
constexpr std::string_view kChatglmTypes[] = {"chatglm"};

}  // namespace

const Family kChatglm = {"chatglm",
                         "ChatGLM2, ChatGLM3, GLM-4 (own code)",
                         kChatglmArchitectures,
                         kChatglmTypes,
                         kChatglmTypes,
                         describe_chatglm,
                         forward_chatglm};

}  // namespace assay::families
