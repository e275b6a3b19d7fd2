// Models that hear and write, as transformers 5.24 has them: Moonshine, whose encoder takes samples and turns places by angles, and
// NVIDIA's Canary, a Parakeet with a decoder. Encoders are told as towers; what a decoder sees of one caches nothing that grows.
#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Attention to what was written, to what was heard, and an MLP, each behind a norm.
Module writing_layer(const Decoder& d, const HeadAttention& writes, Module mlp, bool norm_bias) {
  HeadAttention hears = writes;
  hears.path = "encoder_attn";
  Module layer = layers("model.decoder.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm, norm_bias);
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::post_attention_norm, norm_bias);
  add_norm(layer, "final_layernorm", d.hidden, Role::pre_feedforward_norm, norm_bias);
  layer.children = {attention(writes), attention(hears), std::move(mlp)};
  return layer;
}

// Its heads are those of the decoder.
Module moonshine_encoder(ConfigReader& config, const Decoder& d) {
  config.require(config.size("encoder_num_attention_heads", 8).value() == d.heads.value() &&
                     config.size("encoder_num_key_value_heads", d.heads).value() == d.kv_heads.value(),
                 "encoder and decoder have other numbers of heads: the class mixes them up");
  const Quantity &hidden = d.hidden, &wide = d.intermediate, kv_width = d.kv_heads * d.head_dim;
  const bool bias = config.flag("attention_bias", false);
  Module tower{"model.encoder", "encoder of sound", {}, {}, {}};
  Tower(tower, Part::audio)
      .tensor("conv1.weight", {hidden, 1, 127})
      .tensor("conv2.weight", {Quantity(2) * hidden, hidden, 7})
      .tensor("conv2.bias", {Quantity(2) * hidden})
      .tensor("conv3.weight", {hidden, Quantity(2) * hidden, 3})
      .tensor("conv3.bias", {hidden})
      .norm("groupnorm", hidden, true)
      .norm("layer_norm", hidden, false);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(config, "encoder_num_hidden_layers", 6)));
  Tower(blocks, Part::audio)
      .matrix("self_attn.q_proj", hidden, hidden, bias)
      .matrix("self_attn.k_proj", hidden, kv_width, bias)
      .matrix("self_attn.v_proj", hidden, kv_width, bias)
      .matrix("self_attn.o_proj", hidden, hidden, false)
      .matrix("mlp.fc1", hidden, wide, true)
      .matrix("mlp.fc2", wide, hidden, true)
      .norm("input_layernorm", hidden, false)
      .norm("post_attention_layernorm", hidden, false);
  tower.children = {std::move(blocks)};
  return tower;
}

// fc1 makes what is scaled and what scales it.
Module moonshine_mlp(const Decoder& d) {
  Module mlp = plain_mlp(
      {.hidden = d.hidden, .intermediate = Quantity(2) * d.intermediate, .up = "fc1", .down = "fc2"});
  std::erase_if(mlp.tensors, [](const TensorSpec& spec) { return spec.name.starts_with("fc2"); });
  mlp.tensors.front().role = Role::mlp_gate_up;
  add_linear(mlp, {.name = "fc2",
                   .in = d.intermediate,
                   .out = d.hidden,
                   .role = Role::mlp_down,
                   .part = Part::dense_mlp,
                   .partition = Partition::rows,
                   .bias = true});
  return mlp;
}

void describe_moonshine(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32768), d.hidden = config.size("hidden_size", 288);
  d.intermediate = config.size("intermediate_size", 1152);
  d.layers = read_layers(config, "decoder_num_hidden_layers", 6);
  d.heads = config.size("decoder_num_attention_heads", 8);
  d.kv_heads = config.size("decoder_num_key_value_heads", d.heads);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / decoder_num_attention_heads");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  HeadAttention writes = d.attention();
  writes.qkv_bias = config.flag("attention_bias", false);
  add_frame(
      tree, d, {writing_layer(d, writes, moonshine_mlp(d), false)},
      {.embedding = "model.decoder.embed_tokens", .final_norm = "model.decoder.norm", .head = "proj_out"});
  tree.attention.push_back(geometry(writes, all_layers(d.layers)));
  add_tower(tree, moonshine_encoder(config, d));
}

void describe_canary(ConfigReader& config, ModuleTree& tree) {
  const auto section = config.config().section("decoder_config");
  TowerConfig encoder(config, tree, "encoder_config");
  config.require(section && encoder, "decoder_config or encoder_config is missing");
  ConfigReader text(*section, "decoder_config");
  Decoder d;
  d.vocabulary = text.size("vocab_size", 16384), d.hidden = text.size("hidden_size", 1024);
  d.intermediate = text.size("intermediate_size", 4096), d.layers = read_layers(text, "num_hidden_layers", 8);
  d.heads = text.size("num_attention_heads", 8), d.kv_heads = text.size("num_key_value_heads", d.heads);
  text.require_divides(d.kv_heads, d.heads);
  d.head_dim = text.has("head_dim") ? text.size("head_dim")
                                    : text.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  HeadAttention writes = d.attention();
  writes.qkv_bias = writes.output_bias = text.flag("attention_bias", true);
  config.require(encoder->size("hidden_size", 1024).value() == d.hidden.value(),
                 "hidden_size of the encoder and of the decoder differ: a projector is not described");
  Module mlp = plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .up = "fc1", .down = "fc2"});
  add_frame(tree, d, {writing_layer(d, writes, std::move(mlp), true)},
            {.embedding = "model.decoder.embed_tokens",
             .final_norm = "model.decoder.norm",
             .head = "proj_out",
             .norm_bias = true,
             .head_bias = true});
  Module enters{"model.decoder", "norm of what enters", {}, {}, {}};
  add_norm(enters, "embedding_layernorm", d.hidden, Role::embedding_norm, true);
  tree.modules.insert(tree.modules.begin() + 1, std::move(enters));
  tree.attention.push_back(geometry(writes, all_layers(d.layers)));
  add_tower(tree, parakeet_encoder(
                      *encoder, "model.encoder",
                      {.hidden = 1024, .layers = 32, .wide = 4096, .bins = 128, .attention_bias = true}));
}

constexpr std::string_view kMoonshineArchitectures[] = {"MoonshineForConditionalGeneration"},
                           kMoonshineTypes[] = {"moonshine"},
                           kCanaryArchitectures[] = {"CanaryForConditionalGeneration"},
                           kCanaryTypes[] = {"canary"};

}  // namespace

const Family kMoonshine = {"moonshine",     "Moonshine", kMoonshineArchitectures,
                           kMoonshineTypes, {},          describe_moonshine};
const Family kCanary = {"canary", "Canary", kCanaryArchitectures, kCanaryTypes, {}, describe_canary};

}  // namespace assay::families
