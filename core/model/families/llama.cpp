// Llama 1, 2 and 3.x, and the models that are Llamas in all but name: Yi; Mistral and Ministral differ in
// defaults.
//
//   x = x + o(attention(q, k, v of norm(x)));  x = x + down(silu(gate(norm(x))) * up(norm(x)))
#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Biases {
  bool qkv, output, mlp;
};

void describe_with(ModuleTree& tree, const Decoder& d, const Biases& biases,
                   const std::vector<std::uint64_t>& windowed, std::uint64_t window) {
  HeadAttention a{d.hidden, d.heads, d.kv_heads, d.head_dim};
  a.qkv_bias = biases.qkv;
  a.output_bias = biases.output;

  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
  layer.children.push_back(attention(a));
  // Written by transformers before 4.32 (Llama-2): the rotary frequencies, once a layer.
  add_buffer(layer.children.back(), "rotary_emb.inv_freq",
             {std::max<std::uint64_t>(1, d.head_dim.value() / 2)});
  GatedMlp mlp{d.hidden, d.intermediate};
  mlp.bias = biases.mlp;
  layer.children.push_back(gated_mlp(mlp));

  tree.modules.push_back(embedding("model.embed_tokens", d.vocabulary, d.hidden));
  tree.modules.push_back(std::move(layer));
  tree.modules.push_back(norm("model.norm", d.hidden, Role::final_norm));
  tree.modules.push_back(output_head("lm_head", d.vocabulary, d.hidden, d.tied, "model.embed_tokens.weight"));
  add_geometry(tree, a, d.layers, windowed, window);
}

void describe_llama(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  const bool bias = config.flag("attention_bias", false);
  describe_with(tree, d, {bias, bias, config.flag("mlp_bias", false)}, {}, 0);
}

void describe_mistral(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8});
  const auto window = config.optional_number("sliding_window", 4096);
  const auto windowed = windowed_layers(config, d.layers, [&](std::uint64_t) { return window.has_value(); });
  describe_with(tree, d, {false, false, false}, windowed, window.value_or(0));
}

constexpr std::string_view kLlamaArchitectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM", "YiForCausalLM"};
constexpr std::string_view kLlamaTypes[] = {"llama", "Yi", "yi"};
constexpr std::string_view kLlamaGguf[] = {"llama"};
constexpr std::string_view kMistralArchitectures[] = {"MistralForCausalLM", "MinistralForCausalLM"};
constexpr std::string_view kMistralTypes[] = {"mistral", "ministral"};

}  // namespace

const Family kLlama = {"llama",    "Llama 1, 2, 3.x; Yi", kLlamaArchitectures, kLlamaTypes,
                       kLlamaGguf, describe_llama};
const Family kMistral = {"mistral", "Mistral", kMistralArchitectures, kMistralTypes, {}, describe_mistral};

}  // namespace assay::families
