// SpeechT5: one reader and one writer between nets for words and for sound, which reads aloud (TTS), writes what it hears, or says
// it with another voice. What makes samples of its spectra is published by itself. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/norm_statistics.h"
#include "core/model/families/sound_encoders.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Module speech_layers(const Decoder& d, const std::string& path, const std::string& title, bool writes) {
  HeadAttention a = d.attention();
  a.path = writes ? "self_attn" : "attention", a.o = "out_proj", a.qkv_bias = a.output_bias = true;
  Module layer = layers(path + ".layers.{layer}", title, all_layers(d.layers));
  add_norm(layer, writes ? "self_attn_layer_norm" : "layer_norm", d.hidden, Role::post_attention_norm, true);
  layer.children = {attention(a)};
  if (writes) {
    a.path = "encoder_attn";
    add_norm(layer, "encoder_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
    layer.children.push_back(attention(a));
  }
  add_norm(layer, "final_layer_norm", d.hidden, Role::post_feedforward_norm, true);
  layer.children.push_back(plain_mlp({.hidden = d.hidden,
                                      .intermediate = d.intermediate,
                                      .path = "feed_forward",
                                      .up = "intermediate_dense",
                                      .down = "output_dense"}));
  return layer;
}

// Words: a table, and where sines are scaled, by how much.
void add_words_net(ModuleTree& tree, const Decoder& d, const std::string& side) {
  const std::string path = "speecht5." + side + ".prenet";
  tree.modules.push_back(embedding(path + ".embed_tokens", d.vocabulary, d.hidden));
  if (side == "decoder") return;
  Module scale{path, "scale of places", {}, {}, {}};
  Tower(scale, Part::embedding).tensor("encode_positions.alpha", {});
  tree.modules.push_back(std::move(scale));
}

// A spectrum's last frame, narrowed and widened again, with the speaker's voice beside it.
void add_spectrum_net(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const Quantity bins = config.size("num_mel_bins", 80),
                 narrow = config.size("speech_decoder_prenet_units", 256);
  Module net{"speecht5.decoder.prenet", "what a spectrum enters by", {}, {}, {}};
  Tower into(net, Part::audio);
  const std::uint64_t depth = config.size("speech_decoder_prenet_layers", 2).value();
  config.require(depth <= 100, "speech_decoder_prenet_layers is no number of layers");
  for (std::uint64_t i = 0; i < depth; ++i)
    into.matrix("layers." + std::to_string(i), i == 0 ? bins : narrow, narrow, true);
  into.matrix("final_layer", narrow, d.hidden, true)
      .tensor("encode_positions.alpha", {})
      .matrix("speaker_embeds_layer", config.size("speaker_embedding_dim", 512) + d.hidden, d.hidden, true);
  tree.modules.push_back(std::move(net));
}

// Frames, whether one is the last, and convolutions that mend a spectrum.
void add_spectrum_head(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const Quantity bins = config.size("num_mel_bins", 80), frames = config.size("reduction_factor", 2),
                 units = config.size("speech_decoder_postnet_units", 256),
                 reach = config.size("speech_decoder_postnet_kernel", 5);
  Module net{"speech_decoder_postnet", "what makes a spectrum", {}, {}, {}};
  Tower into(net, Part::audio);
  into.matrix("feat_out", d.hidden, bins * frames, true).matrix("prob_out", d.hidden, frames, true);
  const std::uint64_t depth = config.size("speech_decoder_postnet_layers", 5).value();
  config.require(depth <= 100, "speech_decoder_postnet_layers is no number of layers");
  for (std::uint64_t i = 0; i < depth; ++i) {
    const std::string path = "layers." + std::to_string(i);
    const Quantity out = i + 1 == depth ? bins : units;
    into.tensor(path + ".conv.weight", {out, i == 0 ? bins : units, reach})
        .norm(path + ".batch_norm", out, true);
    add_norm_statistics(net, path + ".batch_norm", out.value());
  }
  tree.modules.push_back(std::move(net));
}

void describe_speecht5(ConfigReader& config, ModuleTree& tree) {
  const std::string& architecture = config.config().architecture();
  const bool reads_words = architecture == "SpeechT5ForTextToSpeech",
             writes_words = architecture == "SpeechT5ForSpeechToText";
  Decoder d;
  d.vocabulary = config.size("vocab_size", 81), d.hidden = config.size("hidden_size", 768);
  d.tied = config.tied_embeddings(true);
  Quantity read;
  for (const std::string side : {"encoder", "decoder"}) {
    const bool writes = side == "decoder";
    d.intermediate = config.size(side + "_ffn_dim", 3072);
    d.layers = read_layers(config, side + "_layers", writes ? 6 : 12);
    d.heads = d.kv_heads = config.size(side + "_attention_heads", 12);
    d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / " + side + "_attention_heads");
    if (writes ? writes_words : reads_words)
      add_words_net(tree, d, side);
    else if (writes)
      add_spectrum_net(config, tree, d);
    else
      add_samples_net(config, tree, d.hidden, "speecht5.encoder.prenet");
    const std::string path = "speecht5." + side + ".wrapped_" + side;
    if (!writes) {
      read = d.layers;
      Module before{path, "norm and distances", {}, {}, {}};
      add_norm(before, "layer_norm", d.hidden, Role::embedding_norm, true);
      const Quantity distances = Quantity(2) * config.size("encoder_max_relative_position", 160);
      before.tensors.push_back(parameter("embed_positions.pe_k.weight", {distances, d.head_dim},
                                         Role::position_embedding, Part::attention));
      tree.modules.push_back(std::move(before));
    }
    tree.modules.push_back(speech_layers(d, path, side + "'s layers", writes));
  }
  note_sizes(tree, d);
  note_both_sides(tree, d.attention(), d.layers, read);
  if (!writes_words) return add_spectrum_head(config, tree, d);
  tree.modules.push_back(output_head("text_decoder_postnet.lm_head", d.vocabulary, d.hidden, d.tied,
                                     "speecht5.decoder.prenet.embed_tokens.weight"));
}

constexpr std::string_view kSpeecht5Architectures[] = {"SpeechT5ForTextToSpeech", "SpeechT5ForSpeechToText",
                                                       "SpeechT5ForSpeechToSpeech"},
                           kSpeecht5Types[] = {"speecht5"};

}  // namespace

const Family kSpeecht5 = {"speecht5",     "SpeechT5", kSpeecht5Architectures,
                          kSpeecht5Types, {},         describe_speecht5};

}  // namespace assay::families
