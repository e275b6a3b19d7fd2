// SeamlessM4T and its second version: NLLB's reader and writer, a conformer that hears, and what speaks: a reader and writer of units
// of sound, and convolutions that make samples of them (unit_vocoder.cpp). The sides of words are told as the model, the rest as towers.
// Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/norm_statistics.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/unit_vocoder.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Keys begin with "t2u_" where the side is of units.
Decoder read_seamless_side(ConfigReader& config, const Decoder& of, const std::string& before,
                           std::uint64_t depth) {
  Decoder d = of;
  d.intermediate = config.size(before + "_ffn_dim", 8192);
  d.layers = read_layers(config, before + "_layers", depth);
  d.heads = d.kv_heads = config.size(before + "_attention_heads", 16);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / " + before + "_attention_heads");
  return d;
}

void add_words_side(ModuleTree& tree, const Decoder& d, const std::string& path, bool writes) {
  tree.modules.push_back(nllb_layers(d, path, writes ? "decoder's layers" : "encoder's layers", writes));
  tree.modules.push_back(norm(path + ".layer_norm", d.hidden, Role::final_norm, true));
}

struct Hearing {
  Quantity hidden, wide, heads, head_dim;
  bool second;
};

void add_heard_attention(Tower& block, const std::string& path, const Quantity& hidden) {
  for (const char* name : {".linear_q", ".linear_k", ".linear_v", ".linear_out"})
    block.matrix(path + name, hidden, hidden, true);
}

void add_heard_mlp(Tower& block, const std::string& path, const Hearing& h) {
  block.matrix(path + ".intermediate_dense", h.hidden, h.wide, true)
      .matrix(path + ".output_dense", h.wide, h.hidden, true);
}

// Where sounds stand: vectors for distances that all heads share, or a matrix and two biases a head.
void add_heard_places(ConfigReader& config, Tower& block, const Hearing& h) {
  const std::string kind = config.text("position_embeddings_type", h.second ? "relative_key" : "relative");
  if (kind == "relative_key" && h.second) {
    const Quantity distances = config.size("left_max_position_embeddings", 64) +
                               config.size("right_max_position_embeddings", 8) + Quantity(1);
    block.tensor("self_attn.distance_embedding.weight", {distances, h.head_dim});
  } else if (kind == "relative" && !h.second) {
    block.matrix("self_attn.linear_pos", h.hidden, h.hidden, false)
        .tensor("self_attn.pos_bias_u", {h.heads, h.head_dim})
        .tensor("self_attn.pos_bias_v", {h.heads, h.head_dim});
  } else {
    config.require(kind == "rotary" && !h.second, "position_embeddings_type is none that the class has");
  }
}

Module heard_layers(ConfigReader& config, const Hearing& h) {
  Module layer = layers("encoder.layers.{layer}", "conformer blocks",
                        all_layers(read_layers(config, "speech_encoder_layers", 24)));
  Tower block(layer, Part::audio);
  for (const char* name : {"ffn1_layer_norm", "self_attn_layer_norm", "ffn2_layer_norm", "final_layer_norm"})
    block.norm(name, h.hidden, true);
  add_heard_mlp(block, "ffn1", h);
  add_heard_mlp(block, "ffn2", h);
  add_heard_attention(block, "self_attn", h.hidden);
  add_heard_places(config, block, h);
  const std::string normed = h.second ? "conv_module.depthwise_layer_norm" : "conv_module.batch_norm";
  block.norm("conv_module.layer_norm", h.hidden, true)
      .tensor("conv_module.pointwise_conv1.weight", {Quantity(2) * h.hidden, h.hidden, 1})
      .tensor("conv_module.depthwise_conv.weight",
              {h.hidden, 1, config.size("conv_depthwise_kernel_size", 31)})
      .tensor("conv_module.pointwise_conv2.weight", {h.hidden, h.hidden, 1})
      .norm(normed, h.hidden, true);
  if (!h.second) add_norm_statistics(layer, normed, h.hidden.value());
  return layer;
}

// Layers that join several frames.
Module heard_adapters(ConfigReader& config, const Hearing& h) {
  const Quantity reach = config.size("adaptor_kernel_size", 8);
  Module layer = layers("adapter.layers.{layer}", "layers that join frames",
                        all_layers(read_layers(config, "num_adapter_layers", 1)));
  Tower block(layer, Part::audio);
  for (const char* name : {"residual", "self_attn"})
    block.tensor(std::string(name) + "_conv.weight", {Quantity(2) * h.hidden, h.hidden, reach})
        .tensor(std::string(name) + "_conv.bias", {Quantity(2) * h.hidden})
        .norm(std::string(name) + "_layer_norm", h.hidden, true);
  block.norm("ffn_layer_norm", h.hidden, true);
  add_heard_attention(block, "self_attn", h.hidden);
  add_heard_mlp(block, "ffn", h);
  return layer;
}

Module speech_encoder(ConfigReader& config, const Quantity& hidden, bool second) {
  Hearing h{hidden,
            config.size("speech_encoder_intermediate_size", 4096),
            config.size("speech_encoder_attention_heads", 16),
            {},
            second};
  h.head_dim = config.quotient(hidden, h.heads, "hidden_size / speech_encoder_attention_heads");
  const Quantity bins = config.size("feature_projection_input_dim", 160);
  Module ears{"speech_encoder", "encoder of sound", {}, {}, {}};
  Tower rest(ears, Part::audio);
  rest.norm("feature_projection.layer_norm", bins, true)
      .matrix("feature_projection.projection", bins, hidden, true)
      .norm("encoder.layer_norm", hidden, true)
      .norm("inner_layer_norm", hidden, true);
  add_heard_mlp(rest, "intermediate_ffn", h);
  ears.children = {heard_layers(config, h)};
  if (config.flag("add_adapter", true)) ears.children.push_back(heard_adapters(config, h));
  return ears;
}

// The second version writes units all at once, of letters, each as long as a small net says.
void add_unit_writer_at_once(ConfigReader& config, ModuleTree& tree, const Decoder& d,
                             const std::string& path) {
  constexpr std::uint64_t kReach = 7;  // by the class
  Module layer = layers(path + ".layers.{layer}", "writer of units", all_layers(d.layers));
  Tower block(layer, Part::audio);
  for (const char* name : {"self_attn.k_proj", "self_attn.v_proj", "self_attn.q_proj", "self_attn.out_proj"})
    block.matrix(name, d.hidden, d.hidden, true);
  block.norm("self_attn_layer_norm", d.hidden, true).norm("conv_layer_norm", d.hidden, true);
  for (const std::string name : {"conv1", "conv2"})
    block.tensor(name + ".weight", {d.hidden, d.hidden, kReach}).tensor(name + ".bias", {d.hidden});
  add_tower(tree, std::move(layer));
  Module rest{path, "letters, and how long units last", {}, {}, {}};
  Tower tables(rest, Part::audio);
  tables.tensor("pos_emb_alpha", {1})
      .tensor("pos_emb_alpha_char", {1})
      .tensor("embed_char.weight", {config.size("char_vocab_size", 10943), d.hidden});
  add_lengths(tables, "duration_predictor",
              {config.size("t2u_variance_predictor_embed_dim", 1024),
               config.size("t2u_variance_predictor_hidden_dim", 256),
               config.size("t2u_variance_predictor_kernel_size", 3)});
  add_tower(tree, std::move(rest));
}

// A module of words is one of sound here.
Module as_sound(Module module) {
  for (TensorSpec& spec : module.tensors) spec.part = Part::audio, spec.role = Role::tower;
  for (Module& child : module.children) child = as_sound(std::move(child));
  return module;
}

void add_units(ConfigReader& config, ModuleTree& tree, const Decoder& of, bool second) {
  const std::string path = "t2u_model.model.";
  const Decoder read = read_seamless_side(config, of, "t2u_encoder", 6),
                written = read_seamless_side(config, of, "t2u_decoder", 6);
  add_tower(tree, as_sound(nllb_layers(read, path + "encoder", "reader before units", false)));
  if (second)
    add_unit_writer_at_once(config, tree, written, path + "decoder");
  else
    add_tower(tree, as_sound(nllb_layers(written, path + "decoder", "writer of units", true)));
  Module rest{"t2u_model", "units of sound", {}, {}, {}};
  const Quantity units = config.size("t2u_vocab_size", 10082);
  Tower(rest, Part::audio)
      .norm("model.encoder.layer_norm", of.hidden, true)
      .norm("model.decoder.layer_norm", of.hidden, true)
      .tensor("model.decoder.embed_tokens.weight", {units, of.hidden});
  if (!of.tied) Tower(rest, Part::audio).tensor("lm_head.weight", {units, of.hidden});
  add_tower(tree, std::move(rest));
}

void describe_seamless(ConfigReader& config, ModuleTree& tree) {
  const std::string& architecture = config.config().architecture();
  const bool second =
      architecture.starts_with("SeamlessM4Tv2") || config.config().model_type() == "seamless_m4t_v2";
  const bool whole = architecture.empty() || architecture.ends_with("Model");
  const bool reads = whole || architecture.find("ForText") != std::string::npos,
             hears = whole || architecture.find("ForSpeech") != std::string::npos,
             speaks = whole || architecture.ends_with("ToSpeech");
  Decoder of;
  of.vocabulary = config.size("vocab_size", 256102), of.hidden = config.size("hidden_size", 1024);
  of.tied = config.tied_embeddings(true);
  const Decoder read = read_seamless_side(config, of, "encoder", 24),
                written = read_seamless_side(config, of, "decoder", 24);
  note_sizes(tree, written);
  tree.modules = {embedding("shared", of.vocabulary, of.hidden)};
  if (reads) add_words_side(tree, read, "text_encoder", false);
  add_words_side(tree, written, "text_decoder", true);
  tree.modules.push_back(output_head("lm_head", of.vocabulary, of.hidden, of.tied, "shared.weight"));
  note_both_sides(tree, written.attention(), written.layers, reads ? read.layers : written.layers);
  if (hears) add_tower(tree, speech_encoder(config, of.hidden, second));
  if (!speaks) return;
  add_units(config, tree, of, second);
  add_tower(tree, unit_vocoder(config, "vocoder"));
}

constexpr std::string_view kSeamlessArchitectures[] = {"SeamlessM4TModel",
                                                       "SeamlessM4TForTextToText",
                                                       "SeamlessM4TForSpeechToText",
                                                       "SeamlessM4TForTextToSpeech",
                                                       "SeamlessM4TForSpeechToSpeech",
                                                       "SeamlessM4Tv2Model",
                                                       "SeamlessM4Tv2ForTextToText",
                                                       "SeamlessM4Tv2ForSpeechToText",
                                                       "SeamlessM4Tv2ForTextToSpeech",
                                                       "SeamlessM4Tv2ForSpeechToSpeech"},
                           kSeamlessTypes[] = {"seamless_m4t", "seamless_m4t_v2"};

}  // namespace

const Family kSeamless = {"seamless_m4t",   "SeamlessM4T", kSeamlessArchitectures, kSeamlessTypes, {},
                          describe_seamless};

}  // namespace assay::families
