// Llama 1, 2 and 3.x, and the models that are Llamas in all but name (Yi). Mistral differs in its defaults
// and in that every layer may look at a window only.
//
//   x = x + o(attention(q, k, v of norm(x)));  x = x + down(silu(gate(norm(x))) * up(norm(x)))
#include <algorithm>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Variant {
  bool attention_bias = false, mlp_bias = false;
  std::string input_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
};

void describe_with(ModuleTree& tree, const Decoder& d, const Variant& v,
                   const std::vector<std::uint64_t>& windowed, std::uint64_t window) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = v.attention_bias;
  GatedMlp mlp = d.mlp();
  mlp.bias = v.mlp_bias;

  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, v.input_norm, d.hidden, Role::input_norm);
  add_norm(layer, v.mlp_norm, d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  // Written by transformers before 4.32 (Llama-2): the rotary frequencies, once a layer.
  add_buffer(layer.children[0], "rotary_emb.inv_freq", {std::max<std::uint64_t>(1, d.head_dim.value() / 2)});
  add_frame(tree, d, {layer});
  add_geometry(tree, a, d.layers, windowed, window);
}

void describe_llama(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  Variant v;
  v.attention_bias = config.flag("attention_bias", false);
  v.mlp_bias = config.flag("mlp_bias", false);
  describe_with(tree, d, v, {}, 0);
}

// Names: gguf-py/gguf/tensor_mapping.py. Defaults: configuration_yi.py.
void describe_yi(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 64000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .kv_heads = 4});
  Variant v;
  v.input_norm = "ln1";
  v.mlp_norm = "ln2";
  describe_with(tree, d, v, {}, 0);
}

void describe_mistral(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8});
  const auto window = config.optional_number("sliding_window", 4096);
  // With layer_types transformers takes the class Ministral in Mistral's place.
  const auto windowed = windowed_layers(config, d.layers, [&](std::uint64_t) { return window.has_value(); });
  config.require(windowed.empty() || window, "layer_types names windows, and sliding_window is null");
  describe_with(tree, d, {}, windowed, window.value_or(0));
}

// GGUFs hold q and k with rows in interleaved order.
Hyperparameters read_llama(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 2048}});
  h.interleaved_pairs = is_gguf(config);
  return h;
}
Hyperparameters read_mistral(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 131072}});
  h.interleaved_pairs = is_gguf(config);
  return h;
}

constexpr std::string_view kLlamaBiases[] = {"attention_bias", "mlp_bias"};
constexpr GgufFamily kLlamaInGguf = {.family = "llama",
                                     .architecture = "llama",
                                     .hf_class = "LlamaForCausalLM",
                                     .paired_heads = true,
                                     .writes_head_dim = true,
                                     .writes_widths = true,
                                     .writes_rope_factors = true,
                                     .vocabulary = GgufFamily::Vocabulary::llama,
                                     .bias_keys = kLlamaBiases};
constexpr GgufFamily kMistralInGguf = {.family = "mistral",
                                       .architecture = "llama",
                                       .hf_class = "MistralForCausalLM",
                                       .told_by = GgufFamily::ToldBy::nothing,
                                       .paired_heads = true,
                                       .writes_head_dim = true,
                                       .writes_widths = true,
                                       .writes_rope_factors = true,
                                       .vocabulary = GgufFamily::Vocabulary::llama};

constexpr std::string_view kLlamaArchitectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM"};
constexpr std::string_view kLlamaTypes[] = {"llama"};
constexpr std::string_view kLlamaGguf[] = {"llama"};
constexpr std::string_view kYiArchitectures[] = {"YiForCausalLM"};
constexpr std::string_view kYiTypes[] = {"Yi", "yi"};
constexpr std::string_view kMistralArchitectures[] = {"MistralForCausalLM"};
constexpr std::string_view kMistralTypes[] = {"mistral"};

}  // namespace

const Family kLlama = {"llama",    "Llama 1, 2, 3.x; Yi", kLlamaArchitectures, kLlamaTypes,
                       kLlamaGguf, describe_llama,        read_llama,          &kLlamaInGguf};
const Family kYi = {"yi", "Yi (own code)", kYiArchitectures, kYiTypes, {}, describe_yi, read_llama};
const Family kMistral = {"mistral", "Mistral",        kMistralArchitectures, kMistralTypes,
                         {},        describe_mistral, read_mistral,          &kMistralInGguf};

}  // namespace assay::families
