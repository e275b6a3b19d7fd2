// Speech2Text: convolutions over a spectrum, an encoder of sound, and BART's decoder, both with norms before blocks and places by
// sines, which nobody stores. Source: transformers 5.23 (speech_to_text).
#include <algorithm>

#include "core/model/families/all_speakers.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Each halves time, and a gate halves what it makes.
void add_subsampler(ConfigReader& config, Module& tower, const Quantity& hidden) {
  const std::uint64_t count = config.number("num_conv_layers", 2);
  const auto kernels = config.numbers("conv_kernel_sizes").value_or(std::vector<std::uint64_t>{5, 5});
  config.require(kernels.size() == count && count > 0,
                 "conv_kernel_sizes has not one entry for each of num_conv_layers");
  config.require(*std::min_element(kernels.begin(), kernels.end()) > 0, "conv_kernel_sizes has a 0");
  const Quantity wide = config.size("conv_channels", 1024);
  const Quantity half("conv_channels / 2", wide.value() / 2);
  config.require(half.value() > 0, "conv_channels is 1, of which no half is left");
  Quantity in = config.size("input_feat_per_channel", 80) * config.size("input_channels", 1);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::string name = "conv.conv_layers." + std::to_string(i);
    const Quantity out = i + 1 < kernels.size() ? wide : Quantity(2) * hidden;
    Tower(tower, Part::audio)
        .tensor(name + ".weight", {out, in, {"conv_kernel_sizes", kernels[i]}})
        .tensor(name + ".bias", {out});
    in = half;
  }
}

Module sound_reader(ConfigReader& config, const Quantity& hidden) {
  Module tower{"model.encoder", "audio tower (Speech2Text)", {}, {}, {}};
  add_subsampler(config, tower, hidden);
  Tower(tower, Part::audio).norm("layer_norm", hidden, true);
  EncoderBlock block{hidden, config.size("encoder_ffn_dim", 2048)};
  block.norm1 = "self_attn_layer_norm", block.norm2 = "final_layer_norm";
  block.up = "fc1", block.down = "fc2";
  config.quotient(hidden, config.size("encoder_attention_heads", 4), "d_model / encoder_attention_heads");
  tower.children = {
      encoder_blocks("layers.{layer}", read_layers(config, "encoder_layers", 12), block, Part::audio)};
  return tower;
}

void describe_speech_to_text(ConfigReader& config, ModuleTree& tree) {
  Decoder d =
      read_writer(config, {.vocabulary = 10000, .hidden = 256, .intermediate = 2048, .layers = 6, .heads = 4},
                  "decoder_attention_heads|num_attention_heads");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  add_frame(tree, d, {bart_layers(d, "model.decoder", "layers", true)},
            {.embedding = "model.decoder.embed_tokens",
             .final_norm = "model.decoder.layer_norm",
             .norm_bias = true});
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  add_tower(tree, sound_reader(config, d.hidden));
}

constexpr std::string_view kSpeechToTextArchitectures[] = {"Speech2TextForConditionalGeneration"},
                           kSpeechToTextTypes[] = {"speech_to_text"};

}  // namespace

const Family kSpeechToText = {
    "speech_to_text",       "Speech2Text", kSpeechToTextArchitectures, kSpeechToTextTypes, {},
    describe_speech_to_text};

}  // namespace assay::families
