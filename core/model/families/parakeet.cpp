// NVIDIA's Parakeet, an encoder of sound: a FastConformer behind convolutions that shorten the spectrum. In front of
// Nemotron 3 Omni, and of Cohere Transcribe (cohere_asr.cpp).
#include <bit>

#include "core/model/families/norm_statistics.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_halvings(Tower& tower, const std::string& path, const Quantity& channels, const Quantity& side,
                  std::uint64_t count) {
  const auto convolve = [&](std::uint64_t at, const Quantity& in, const Quantity& reach) {
    const std::string name = path + "." + std::to_string(at);
    tower.tensor(name + ".weight", {channels, in, reach, reach}).tensor(name + ".bias", {channels});
  };
  convolve(0, 1, side);
  for (std::uint64_t i = 1; i < count; ++i) {  // every third place is an activation's
    convolve(3 * i - 1, 1, side);
    convolve(3 * i, channels, 1);
  }
}

namespace {

// The same, named one by one.
void add_named_halvings(Tower& tower, const Quantity& channels, const Quantity& side, std::uint64_t count) {
  const auto convolve = [&](const std::string& name, const Quantity& in, const Quantity& reach) {
    tower.tensor(name + ".weight", {channels, in, reach, reach}).tensor(name + ".bias", {channels});
  };
  convolve("conv_in", 1, side);
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::string layer = "layers." + std::to_string(i - 1);
    convolve(layer + ".depthwise_conv", 1, side);
    convolve(layer + ".pointwise_conv", channels, 1);
  }
}

Module shortening(ConfigReader& audio, const Quantity& hidden, const ParakeetClass& of) {
  const Quantity channels = audio.size("subsampling_conv_channels", 256);
  const Quantity side = audio.size("subsampling_conv_kernel_size", 3);
  const std::uint64_t factor = audio.size("subsampling_factor", 8).value();
  const std::uint64_t stride = audio.size("subsampling_conv_stride", 2).value();
  const auto halvings = static_cast<std::uint64_t>(std::bit_width(factor) - 1);
  std::uint64_t left = audio.size("num_mel_bins", of.bins).value();
  // Filled sides: (left + kernel - 1 + stride - 1 - kernel) / stride + 1.
  for (std::uint64_t i = 0; i < halvings; ++i)
    left = of.streams ? (left + stride - 2) / stride + 1 : left / stride;
  Module module{"subsampling", "subsampling", {}, {}, {}};
  Tower tower(module, Part::audio);
  if (of.streams)
    add_named_halvings(tower, channels, side, halvings);
  else
    add_halvings(tower, "layers", channels, side, halvings);
  tower.matrix("linear", channels * Quantity("bins left", left), hidden, true);
  return module;
}

Module conformer_blocks(ConfigReader& audio, const Quantity& hidden, const ParakeetClass& of) {
  const Quantity wide = audio.size("intermediate_size", of.wide),
                 heads = audio.size("num_attention_heads", 8);
  const Quantity dim = audio.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity kv_width = (of.streams ? heads : audio.size("num_key_value_heads", heads)) * dim;
  const bool bias = audio.flag("attention_bias", of.attention_bias),
             convolves = audio.flag("convolution_bias", true);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(audio, "num_hidden_layers", of.layers)));
  Tower block(blocks, Part::audio);
  for (const std::string mlp : {"feed_forward1", "feed_forward2"})
    block.matrix(mlp + ".linear1", hidden, wide, bias).matrix(mlp + ".linear2", wide, hidden, bias);
  for (const char* norm :
       {"norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out", "conv.norm"})
    block.norm(norm, hidden, true);
  block.matrix("self_attn.q_proj", hidden, hidden, bias)
      .matrix("self_attn.k_proj", hidden, kv_width, bias)
      .matrix("self_attn.v_proj", hidden, kv_width, bias)
      .matrix("self_attn.o_proj", hidden, hidden, bias)
      .matrix("self_attn.relative_k_proj", hidden, hidden, false)
      .tensor("self_attn.bias_u", {heads, dim})
      .tensor("self_attn.bias_v", {heads, dim})
      .tensor("conv.pointwise_conv1.weight", {Quantity(2) * hidden, hidden, 1})
      .tensor("conv.depthwise_conv.weight", {hidden, 1, audio.size("conv_kernel_size", 9)})
      .tensor("conv.pointwise_conv2.weight", {hidden, hidden, 1});
  if (convolves) {
    block.tensor("conv.pointwise_conv1.bias", {Quantity(2) * hidden})
        .tensor("conv.depthwise_conv.bias", {hidden})
        .tensor("conv.pointwise_conv2.bias", {hidden});
  }
  if (!of.streams) add_norm_statistics(blocks, "conv.norm", hidden.value());
  return blocks;
}

}  // namespace

Module parakeet_encoder(ConfigReader& audio, std::string path, const ParakeetClass& of) {
  const Quantity hidden = audio.size("hidden_size", of.hidden);
  Module tower{std::move(path), "encoder of sound (Parakeet)", {}, {}, {}};
  tower.children = {shortening(audio, hidden, of), conformer_blocks(audio, hidden, of)};
  return tower;
}

void add_parakeet(ConfigReader& audio, ModuleTree& tree) {
  const Quantity hidden = audio.size("hidden_size", 1024);
  add_tower(tree, parakeet_encoder(audio, "sound_encoder.encoder", {}));
  const Quantity between = audio.size("projection_hidden_size");
  const bool bias = audio.flag("projection_bias", false);
  Module projector{"sound_projection", "projector of sound", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("norm", hidden, false)
      .matrix("linear1", hidden, between, bias)
      .matrix("linear2", between, text_width(tree), bias);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
