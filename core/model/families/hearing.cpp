#include "core/model/families/hearing.h"

#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

Module whisper_blocks(ConfigReader& audio, const Quantity& width, const Quantity& wide,
                      std::uint64_t layer_default, bool key_bias) {
  Module blocks = layers("layers.{layer}", "blocks",
                         all_layers(read_layers(audio, "encoder_layers|num_hidden_layers", layer_default)));
  Tower(blocks, Part::audio)
      .norm("self_attn_layer_norm", width, true)
      .matrix("self_attn.q_proj", width, width, true)
      .matrix("self_attn.k_proj", width, width, key_bias)
      .matrix("self_attn.v_proj", width, width, true)
      .matrix("self_attn.out_proj", width, width, true)
      .norm("final_layer_norm", width, true)
      .matrix("fc1", width, wide, true)
      .matrix("fc2", wide, width, true);
  return blocks;
}

}  // namespace

Quantity whisper_width(ConfigReader& audio, const WhisperClass& defaults) {
  return audio.size("d_model|hidden_size", defaults.hidden);
}
Quantity whisper_wide(ConfigReader& audio, const WhisperClass& defaults) {
  return audio.size("encoder_ffn_dim|intermediate_size", defaults.wide);
}

Module whisper_encoder(ConfigReader& audio, std::string path, const WhisperClass& defaults) {
  const Quantity width = whisper_width(audio, defaults);
  Module tower{std::move(path), "encoder of sound (Whisper)", {}, {}, {}};
  Tower start(tower, Part::audio);
  start.tensor("conv1.weight", {width, audio.size("num_mel_bins", defaults.bins), 3})
      .tensor("conv1.bias", {width})
      .tensor("conv2.weight", {width, width, 3})
      .tensor("conv2.bias", {width});
  if (defaults.places)
    start.tensor("embed_positions.weight", {audio.size("max_source_positions", 1500), width});
  start.norm(std::string(defaults.last_norm), width, true);
  tower.children = {whisper_blocks(audio, width, whisper_wide(audio, defaults), defaults.layers, false)};
  return tower;
}

Module spectrum_encoder(ConfigReader& audio, std::string path, const SpectrumClass& defaults) {
  const Quantity width = audio.size("d_model|hidden_size", defaults.hidden);
  const Quantity channels = audio.size("downsample_hidden_size", 480);
  const std::uint64_t bins = audio.size("num_mel_bins", 128).value();
  const Quantity left("num_mel_bins / 8", (bins + 7) / 8);
  Module tower{std::move(path), "encoder of sound", {}, {}, {}};
  Tower start(tower, Part::audio);
  for (const std::string at : {"1", "2", "3"}) {
    start.tensor("conv2d" + at + ".weight", {channels, at == "1" ? Quantity(1) : channels, 3, 3})
        .tensor("conv2d" + at + ".bias", {channels});
  }
  start.matrix("conv_out", channels * left, width, false).norm("ln_post", width, true);
  tower.children = {whisper_blocks(
      audio, width, audio.size("encoder_ffn_dim|intermediate_size", defaults.wide), defaults.layers, true)};
  return tower;
}

}  // namespace assay::families
