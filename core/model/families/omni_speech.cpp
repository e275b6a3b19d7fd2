// What speaks in Qwen2.5-Omni (arXiv:2503.20215, §2.4): the talker, a Qwen2 over words of sound, and token2wav, which makes a
// spectrum of them by a diffusion whose layers attend to near words alone, and of it samples (BigVGAN). Source: transformers
// 5.23, modeling_qwen2_5_omni.py.
#include <nlohmann/json.hpp>

#include "core/model/families/omni.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/small_decoders.h"
#include "core/model/families/sound_convolutions.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kMostParts = 1000;  // of one list; no release has a hundred

// It reads the thinker's hidden states.
Module omni_talker(ConfigReader& config) {
  const Decoder d = read_small_decoder(config, {.vocabulary = 0,
                                                .hidden = 3584,
                                                .intermediate = 18944,
                                                .layers = 28,
                                                .heads = 28,
                                                .kv_heads = 4,
                                                .head_dim = 128});
  const Quantity words = config.size("vocab_size", 8448), read = config.size("embedding_size", 3584);
  Module speaks{"talker", "talker", {}, {}, {}};
  Tower(speaks, Part::audio)
      .tensor("model.embed_tokens.weight", {words, read})
      .norm("model.norm", d.hidden, false)
      .matrix("thinker_to_talker_proj", read, d.hidden, true)
      .matrix("codec_head", d.hidden, words, false);
  speaks.children = {small_llama(d, "model.layers.{layer}", {.qkv_bias = true})};
  return speaks;
}

void add_plain_conv(Tower& tower, const std::string& name, const Quantity& in, const Quantity& out,
                    const Quantity& kernel) {
  add_sound_convolution(tower, name, {out, in, kernel}, out);
}

// ECAPA-TDNN (arXiv:2005.07143): who speaks, as a vector. Between its first and its last width stand blocks of convolutions
// over parts of the channels, each but the first of which also sees what came of the part before.
Module ecapa(ConfigReader& dit, const Quantity& mel) {
  using Numbers = std::vector<std::uint64_t>;
  const Numbers widths = dit.numbers("enc_channels").value_or(Numbers{256, 256, 256, 256, 768});
  const Numbers kernels = dit.numbers("enc_kernel_sizes").value_or(Numbers{5, 3, 3, 3, 1});
  const std::uint64_t parts = dit.size("enc_res2net_scale", 2).value();
  const Quantity squeezed = dit.size("enc_se_channels", 64), attends = dit.size("enc_attention_channels", 64);
  dit.require(
      widths.size() >= 2 && widths.size() == kernels.size() && widths.size() <= kMostParts,
      "enc_channels and enc_kernel_sizes are not equally long, or of less than two, or of more than 1000");
  dit.require(parts <= kMostParts, "enc_res2net_scale is larger than 1000");
  for (std::size_t i = 0; i < widths.size(); ++i)
    dit.require(widths[i] >= parts && kernels[i] > 0,
                "enc_channels or enc_kernel_sizes hold what is too small");
  Module encoder{"input_embed.spk_encoder", "encoder of the speaker", {}, {}, {}};
  Tower tower(encoder, Part::audio);
  add_plain_conv(tower, "blocks.0.conv", mel, Quantity(widths[0]), Quantity(kernels[0]));
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) {
    const std::string block = "blocks." + std::to_string(i);
    const Quantity width(widths[i]);
    add_plain_conv(tower, block + ".tdnn1.conv", Quantity(widths[i - 1]), width, 1);
    for (std::uint64_t part = 0; part + 1 < parts; ++part)
      add_plain_conv(tower, block + ".res2net_block.blocks." + std::to_string(part) + ".conv",
                     Quantity(widths[i] / parts), Quantity(widths[i] / parts), Quantity(kernels[i]));
    add_plain_conv(tower, block + ".tdnn2.conv", width, width, 1);
    add_plain_conv(tower, block + ".se_block.conv1", width, squeezed, 1);
    add_plain_conv(tower, block + ".se_block.conv2", squeezed, width, 1);
  }
  const Quantity last(widths.back());
  add_plain_conv(tower, "mfa.conv", last, last, Quantity(kernels.back()));
  add_plain_conv(tower, "asp.tdnn.conv", Quantity(3) * last, attends, 1);
  add_plain_conv(tower, "asp.conv", attends, last, 1);
  add_plain_conv(tower, "fc", Quantity(2) * last, dit.size("enc_dim", 128), 1);
  return encoder;
}

Module spectrum_diffusion(ConfigReader& dit) {
  const Quantity hidden = dit.size("hidden_size", 1024), mel = dit.size("mel_dim", 80);
  const Quantity width = dit.size("num_attention_heads", 16) * dit.size("head_dim", 64);
  const Quantity wide = hidden * dit.size("ff_mult", 2), words = dit.size("emb_dim", 512);
  const Quantity enters = mel + dit.size("enc_dim", 128) + dit.size("enc_emb_dim", 192) + words;
  Module whole{"token2wav.code2wav_dit_model", "words to spectrum (DiT)", {}, {}, {}};
  Tower(whole, Part::audio)
      .matrix("time_embed.time_mlp.0", 256, hidden, true)
      .matrix("time_embed.time_mlp.2", hidden, hidden, true)
      .tensor("text_embed.codec_embed.weight", {dit.size("num_embeds", 8193) + Quantity(1), words})
      .matrix("input_embed.proj", enters, hidden, true)
      .matrix("norm_out.linear", hidden, Quantity(2) * hidden, true)
      .matrix("proj_out", hidden, mel, true);
  Module each =
      layers("transformer_blocks.{layer}", "blocks", all_layers(read_layers(dit, "num_hidden_layers", 22)));
  Tower(each, Part::audio)
      .matrix("attn_norm.linear", hidden, Quantity(6) * hidden, true)
      .matrix("attn.to_q", hidden, width, true)
      .matrix("attn.to_k", hidden, width, true)
      .matrix("attn.to_v", hidden, width, true)
      .matrix("attn.to_out.0", width, hidden, true)
      .matrix("ff.ff.0", hidden, wide, true)
      .matrix("ff.ff.3", wide, hidden, true);
  whole.children = {ecapa(dit, mel), std::move(each)};
  return whole;
}

void add_wave_activation(Tower& tower, const std::string& name, const Quantity& width) {
  tower.tensor(name + ".act.alpha", {width}).tensor(name + ".act.beta", {width});
}

// Three pairs of convolutions, each with an activation whose waves are learnt.
void add_amp_block(Tower& tower, const std::string& block, const Quantity& width, const Quantity& kernel) {
  for (int i = 0; i < 3; ++i) {
    for (const std::string pair : {".convs1.", ".convs2."})
      add_plain_conv(tower, block + pair + std::to_string(i), width, width, kernel);
  }
  for (int i = 0; i < 6; ++i) add_wave_activation(tower, block + ".activations." + std::to_string(i), width);
}

// BigVGAN (arXiv:2206.04658): each stretch of the time halves the width.
Module bigvgan(ConfigReader& vocoder) {
  using Numbers = std::vector<std::uint64_t>;
  const Numbers rates = vocoder.numbers("upsample_rates").value_or(Numbers{5, 3, 2, 2, 2, 2});
  const Numbers reaches = vocoder.numbers("upsample_kernel_sizes").value_or(Numbers{11, 7, 4, 4, 4, 4});
  const Numbers kernels = vocoder.numbers("resblock_kernel_sizes").value_or(Numbers{3, 7, 11});
  const std::uint64_t first = vocoder.size("upsample_initial_channel", 1536).value();
  vocoder.require(rates.size() == reaches.size() && rates.size() < 60 && (first >> rates.size()) > 0,
                  "upsample_rates and upsample_kernel_sizes are not equally long, or leave no channel");
  const auto& text = vocoder.config().text();
  const auto spread = text.find("resblock_dilation_sizes");
  vocoder.require(kernels.size() <= kMostParts && (spread == text.end() || spread->size() == kernels.size()),
                  "resblock_kernel_sizes and resblock_dilation_sizes are not equally long, or too long");
  Module whole{"token2wav.code2wav_bigvgan_model", "spectrum to samples (BigVGAN)", {}, {}, {}};
  Tower tower(whole, Part::audio);
  add_plain_conv(tower, "conv_pre", vocoder.size("mel_dim", 80), Quantity(first), 7);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Quantity in(first >> i), out(first >> (i + 1));
    const std::string stretch = "ups." + std::to_string(i) + ".0";
    add_sound_convolution(tower, stretch, {in, out, Quantity(reaches[i])}, out);
    for (std::size_t j = 0; j < kernels.size(); ++j)
      add_amp_block(tower, "resblocks." + std::to_string(i * kernels.size() + j), out, Quantity(kernels[j]));
  }
  const Quantity last(first >> rates.size());
  add_wave_activation(tower, "activation_post", last);
  tower.tensor("conv_post.weight", {1, last, 7});
  return whole;
}

}  // namespace

// No token of text meets what speaks: it is told as towers.
void add_omni_talker(ConfigReader& whole, ModuleTree& tree) {
  if (!whole.flag("enable_audio_output", true)) return;
  TowerConfig speaks(whole, tree, "talker_config"), sounds(whole, tree, "token2wav_config");
  if (!speaks || !sounds) {
    tree.not_counted.push_back({"what speaks: this config does not describe it", std::nullopt});
    return;
  }
  TowerConfig dit(*sounds, tree, "dit_config"), vocoder(*sounds, tree, "bigvgan_config");
  whole.require(dit && vocoder, "token2wav_config lacks dit_config or bigvgan_config");
  add_tower(tree, omni_talker(*speaks));
  add_tower(tree, spectrum_diffusion(*dit));
  add_tower(tree, bigvgan(*vocoder));
  tree.not_counted.push_back({"what the talker caches", std::nullopt});
}

}  // namespace assay::families
