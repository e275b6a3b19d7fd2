// MusicGen and MusicGen Melody: a decoder of a codec's codes, with a table and a head for each of its books; a T5 reads what is asked
// for, and EnCodec makes sound of codes. The first attends to the words, the second has them and a melody in front.
// Source: transformers 5.23 (musicgen, musicgen_melody).
#include "core/model/families/all_speakers.h"
#include "core/model/families/composed.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Module music_layers(const Decoder& d, const std::string& path, bool across) {
  Module layer = layers(path + ".layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  if (across) add_norm(layer, "encoder_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "final_layer_norm", d.hidden, Role::pre_feedforward_norm, true);
  HeadAttention a = d.attention();
  a.o = "out_proj";
  layer.children.push_back(attention(a));
  a.path = "encoder_attn";
  if (across) layer.children.push_back(attention(a));
  layer.children.push_back(plain_mlp({.hidden = d.hidden,
                                      .intermediate = d.intermediate,
                                      .path = "",
                                      .bias = false,
                                      .up = "fc1",
                                      .down = "fc2"}));
  return layer;
}

// One matrix or table for each book.
Module of_each_book(std::string path, const Quantity& books, const Quantity& rows, const Quantity& hidden,
                    Role role, Part part) {
  Module module = layers(std::move(path), "of each book of codes", all_layers(books));
  module.tensors.push_back(parameter("weight", {rows, hidden}, role, part));
  return module;
}

void describe_music_decoder(ConfigReader& config, ModuleTree& tree, const std::string& prefix, bool melody) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 2048), d.hidden = config.size("hidden_size", 1024);
  d.intermediate = config.size("ffn_dim", 4096), d.layers = read_layers(config, "num_hidden_layers", 24);
  d.heads = d.kv_heads = config.size("num_attention_heads", 16);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.tied = false;
  const Quantity books = read_layers(config, "num_codebooks", 4);
  note_sizes(tree, d);
  const std::string path = prefix + "model.decoder";
  Module sines{path, "places", {}, {}, {}};
  add_buffer(sines, "embed_positions.weights",
             {config.size("max_position_embeddings", 2048).value(), d.hidden.value()});
  tree.modules = {of_each_book(path + ".embed_tokens.{layer}", books, d.vocabulary + Quantity(1), d.hidden,
                               Role::token_embedding, Part::embedding),
                  std::move(sines), music_layers(d, path, !melody),
                  norm(path + ".layer_norm", d.hidden, Role::final_norm, true),
                  of_each_book(prefix + "lm_heads.{layer}", books, d.vocabulary, d.hidden, Role::output_head,
                               Part::output)};
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

// What is read and what makes sound are told apart from what writes codes.
void add_music_ends(ConfigReader& config, ModuleTree& tree, bool melody) {
  const Quantity hidden("hidden_size", tree.hidden_size);
  ModuleTree words = describe_half(config, tree, "text_encoder", Half::text_encoder);
  ModuleTree sound = describe_half(config, tree, "audio_encoder", Half::encoder);
  Module projector{"", "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  TowerConfig decoder(config, tree, "decoder");
  const bool told = !melody && decoder->optional_number("cross_attention_hidden_size").has_value();
  if (!told && words.hidden_size != hidden.value())
    into.matrix("enc_to_dec_proj", {"text_encoder.hidden_size", words.hidden_size}, hidden, true);
  if (melody) {
    const Quantity pitches = config.size("num_chroma", 12);
    if (pitches.value() != hidden.value()) into.matrix("audio_enc_to_dec_proj", pitches, hidden, true);
  }
  for (ModuleTree* part : {&words, &sound}) {
    for (Module& module : part->modules) add_tower(tree, std::move(module));
  }
  if (!projector.tensors.empty()) add_tower(tree, std::move(projector));
}

void describe_music(ConfigReader& config, ModuleTree& tree, bool melody) {
  if (config.config().architecture().ends_with("ForCausalLM") ||
      config.config().model_type().ends_with("_decoder"))
    return describe_music_decoder(config, tree, "", melody);
  {
    TowerConfig decoder(config, tree, "decoder");
    config.require(static_cast<bool>(decoder), "decoder is missing");
    describe_music_decoder(*decoder, tree, "decoder.", melody);
  }
  add_music_ends(config, tree, melody);
}
void describe_musicgen(ConfigReader& config, ModuleTree& tree) {
  describe_music(config, tree, false);
}
void describe_musicgen_melody(ConfigReader& config, ModuleTree& tree) {
  describe_music(config, tree, true);
}

constexpr std::string_view kMusicgenArchitectures[] = {"MusicgenForConditionalGeneration",
                                                       "MusicgenForCausalLM"},
                           kMusicgenTypes[] = {"musicgen", "musicgen_decoder"},
                           kMelodyArchitectures[] = {"MusicgenMelodyForConditionalGeneration",
                                                     "MusicgenMelodyForCausalLM"},
                           kMelodyTypes[] = {"musicgen_melody", "musicgen_melody_decoder"};

}  // namespace

const Family kMusicgen = {"musicgen",     "MusicGen", kMusicgenArchitectures,
                          kMusicgenTypes, {},         describe_musicgen};
const Family kMusicgenMelody = {
    "musicgen_melody", "MusicGen Melody", kMelodyArchitectures, kMelodyTypes, {}, describe_musicgen_melody};

}  // namespace assay::families
