#include "core/model/families/small_decoders.h"

namespace assay::families {

using namespace blocks;

Decoder read_small_decoder(ConfigReader& config, const DecoderDefaults& of) {
  Decoder d;
  d.hidden = config.size("hidden_size", of.hidden);
  d.layers = read_layers(config, "num_hidden_layers", of.layers);
  d.heads = config.size("num_attention_heads", of.heads);
  d.kv_heads = config.optional_size("num_key_value_heads", of.kv_heads).value_or(d.heads);
  config.require_divides(d.kv_heads, d.heads);
  const auto dim = config.optional_size("head_dim", of.head_dim);
  d.head_dim = dim ? *dim : config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  if (of.intermediate > 0) d.intermediate = config.size("intermediate_size", of.intermediate);
  return d;
}

SmallLayers read_small_layers(ConfigReader& config) {
  SmallLayers of;
  of.qkv_bias = of.output_bias = config.flag("attention_bias", false);
  of.mlp_bias = config.flag("mlp_bias", false);
  return of;
}

void add_small_attention(Tower& layer, const Decoder& d, const SmallLayers& of) {
  const Quantity width = d.heads * d.head_dim, kv_width = d.kv_heads * d.head_dim;
  layer.matrix("self_attn.q_proj", d.hidden, width, of.qkv_bias)
      .matrix("self_attn.k_proj", d.hidden, kv_width, of.qkv_bias)
      .matrix("self_attn.v_proj", d.hidden, kv_width, of.qkv_bias)
      .matrix("self_attn.o_proj", width, d.hidden, of.output_bias);
  if (of.head_norms)
    layer.norm("self_attn.q_norm", d.head_dim, false).norm("self_attn.k_norm", d.head_dim, false);
}

void add_small_mlp(Tower& layer, const std::string& path, const Quantity& hidden, const Quantity& wide,
                   bool bias) {
  layer.matrix(path + ".gate_proj", hidden, wide, bias)
      .matrix(path + ".up_proj", hidden, wide, bias)
      .matrix(path + ".down_proj", wide, hidden, bias);
}

void add_small_norms(Tower& layer, const Quantity& hidden) {
  layer.norm("input_layernorm", hidden, false).norm("post_attention_layernorm", hidden, false);
}

Module small_llama(const Decoder& d, std::string path, const SmallLayers& of) {
  Module blocks = layers(std::move(path), "layers", all_layers(d.layers));
  Tower layer(blocks, Part::audio);
  add_small_norms(layer, d.hidden);
  add_small_attention(layer, d, of);
  add_small_mlp(layer, "mlp", d.hidden, d.intermediate, of.mlp_bias);
  return blocks;
}

}  // namespace assay::families
