// VibeVoice (arXiv:2508.19205): a Qwen2 between two encoders of samples, one of what is heard and one of what is said, and in
// those that speak a decoder of samples and a head that takes noise away. transformers (modeling_vibevoice.py,
// modeling_vibevoice_acoustic_tokenizer.py) and the authors' code (modular_vibevoice_tokenizer.py,
// modular_vibevoice_diffusion_head.py) compute the same under other names and other keys.
#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/sound_convolutions.h"
#include "core/model/families/sound_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"
#include "core/system/text.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kMostBlocks = 1000;

// Convolutions that halve the length, or better, and blocks after each, from the samples to the latents.
struct Samples {
  Quantity channels = 1, latent = 64, filters = 32, kernel = 7, last_kernel = 7, expansion = 4;
  std::vector<std::uint64_t> ratios, depths;  // in the order of the layers
  bool bias = true, scaled = true, norm_bias = false, last_norm = false, across_channels = false;
  bool own_names = false;

  // Each stage has twice the width of the one before; `stage` counts from the samples.
  Quantity width(std::size_t stage) const {
    return stage == 0 ? filters : Quantity(std::uint64_t{1} << stage) * filters;
  }
};

void check_samples(ConfigReader& config, const Samples& of) {
  config.require(of.depths.size() == of.ratios.size() + 1 && of.depths.size() < 30,
                 "there is not one depth more than ratios");
  for (const std::uint64_t depth : of.depths)
    config.require(depth <= kMostBlocks, "a stage has more than 1000 blocks");
  for (const std::uint64_t ratio : of.ratios)
    config.require(ratio > 0 && ratio <= 4096, "a ratio is 0, or more than 4096");
}

// A convolution of each channel, an MLP, each scaled by a vector.
void add_sample_block(Tower& tower, const std::string& block, const Quantity& width, const Samples& of) {
  const std::string mixer = block + (of.own_names ? ".mixer.conv.conv.conv" : ".mixer.conv");
  tower.norm(block + ".norm", width, of.norm_bias).norm(block + ".ffn_norm", width, of.norm_bias);
  if (of.scaled) tower.tensor(block + ".gamma", {width}).tensor(block + ".ffn_gamma", {width});
  tower.tensor(mixer + ".weight", {width, of.across_channels ? width : 1, of.kernel});
  if (of.bias) tower.tensor(mixer + ".bias", {width});
  tower.matrix(block + ".ffn.linear1", width, of.expansion * width, of.bias)
      .matrix(block + ".ffn.linear2", of.expansion * width, width, of.bias);
}

// What leads into a stage, and where its blocks stand.
std::string stage_entry(const Samples& of, std::size_t stage, bool decodes) {
  const std::string at =
      of.own_names ? (decodes ? "upsample_layers." : "downsample_layers.") + std::to_string(stage) + ".0"
      : stage == 0 ? "stem"
                   : "conv_layers." + std::to_string(stage - 1);
  return at + (decodes && stage > 0 ? ".convtr.convtr" : ".conv.conv");
}
std::string stage_blocks(const Samples& of, std::size_t stage) {
  if (of.own_names) return "stages." + std::to_string(stage) + ".";
  return (stage == 0 ? "stem" : "conv_layers." + std::to_string(stage - 1)) + ".stage.";
}

Module sample_encoder(ConfigReader& config, const Samples& of, std::string path) {
  check_samples(config, of);
  Module module{std::move(path), "encoder of sound (VibeVoice)", {}, {}, {}};
  Tower tower(module, Part::audio);
  add_sound_convolution(tower, stage_entry(of, 0, false), {of.filters, of.channels, of.kernel}, of.filters,
                        of.bias);
  for (std::size_t i = 0; i <= of.ratios.size(); ++i) {
    if (i > 0)
      add_sound_convolution(tower, stage_entry(of, i, false),
                            {of.width(i), of.width(i - 1), Quantity(2) * Quantity(of.ratios[i - 1])},
                            of.width(i), of.bias);
    for (std::uint64_t j = 0; j < of.depths[i]; ++j)
      add_sample_block(tower, stage_blocks(of, i) + std::to_string(j), of.width(i), of);
  }
  const Quantity last = of.width(of.ratios.size());
  if (of.last_norm) tower.norm("norm", last, of.norm_bias);
  add_sound_convolution(tower, of.own_names ? "head.conv.conv" : "head.conv",
                        {of.latent, last, of.last_kernel}, of.latent, of.bias);
  return module;
}

Module sample_decoder(ConfigReader& config, const Samples& of, std::string path) {
  check_samples(config, of);
  Module module{std::move(path), "decoder of sound (VibeVoice)", {}, {}, {}};
  Tower tower(module, Part::audio);
  const std::size_t stages = std::min<std::size_t>(of.ratios.size(), 30);
  add_sound_convolution(tower, stage_entry(of, 0, true), {of.width(stages), of.latent, of.kernel},
                        of.width(stages), of.bias);
  for (std::size_t i = 0; i <= stages; ++i) {
    const Quantity width = of.width(stages - i);
    if (i > 0)
      add_sound_convolution(tower, stage_entry(of, i, true),
                            {of.width(stages - i + 1), width, Quantity(2) * Quantity(of.ratios[i - 1])},
                            width, of.bias);
    for (std::uint64_t j = 0; j < of.depths[i]; ++j)
      add_sample_block(tower, stage_blocks(of, i) + std::to_string(j), width, of);
  }
  if (of.last_norm) tower.norm("norm", of.filters, of.norm_bias);
  add_sound_convolution(tower, of.own_names ? "head.conv.conv" : "head.conv",
                        {of.channels, of.filters, of.last_kernel}, of.channels, of.bias);
  return module;
}

// --- as transformers saves it ----------------------------------------------------------------------------------------

Samples read_samples(ConfigReader& audio, std::uint64_t latent) {
  Samples of;
  of.channels = audio.size("channels", 1), of.latent = audio.size("hidden_size", latent);
  of.filters = audio.size("num_filters", 32), of.expansion = audio.size("ffn_expansion", 4);
  of.kernel = of.last_kernel = audio.size("kernel_size", 7);
  of.ratios = audio.numbers("downsampling_ratios").value_or(std::vector<std::uint64_t>{2, 2, 4, 5, 5, 8});
  of.depths = audio.numbers("depths").value_or(std::vector<std::uint64_t>{3, 3, 3, 3, 3, 3, 8});
  return of;
}

// A decoder is its encoder in a mirror.
Samples mirror_image(Samples of) {
  std::reverse(of.ratios.begin(), of.ratios.end());
  std::reverse(of.depths.begin(), of.depths.end());
  return of;
}

struct DenoiserNames {
  std::string time1, time2, modulate, last, last_modulate;
};

// Takes noise away from a latent, told by the language model what to say: an MLP a layer, each between a shift, a scale and
// a gate that follow from the time.
Module sample_denoiser(std::string path, const Quantity& hidden, const Quantity& latent, const Quantity& wide,
                       const Quantity& depth, const Quantity& waves, bool mlp_bias,
                       const DenoiserNames& names) {
  Module module{std::move(path), "head of the diffusion", {}, {}, {}};
  Tower(module, Part::audio)
      .matrix("noisy_images_proj", latent, hidden, false)
      .matrix("cond_proj", hidden, hidden, false)
      .matrix(names.time1, waves, hidden, false)
      .matrix(names.time2, hidden, hidden, false)
      .matrix("final_layer." + names.last_modulate, hidden, Quantity(2) * hidden, false)
      .matrix("final_layer." + names.last, hidden, latent, false);
  Module each = layers("layers.{layer}", "layers", all_layers(depth));
  Tower(each, Part::audio)
      .matrix("ffn.gate_proj", hidden, wide, mlp_bias)
      .matrix("ffn.up_proj", hidden, wide, mlp_bias)
      .matrix("ffn.down_proj", wide, hidden, mlp_bias)
      .norm("norm", hidden, false)
      .matrix(names.modulate, hidden, Quantity(3) * hidden, false);
  module.children = {std::move(each)};
  return module;
}

void add_connector(ModuleTree& tree, std::string path, const Quantity& latent, const std::string& first,
                   const std::string& norm, const std::string& second) {
  const Quantity out = text_width(tree);
  Module projector{std::move(path), "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix(first, latent, out, true)
      .norm(norm, out, false)
      .matrix(second, out, out, true);
  add_tower(tree, std::move(projector));
}

}  // namespace

void add_vibevoice_asr(ConfigReader& document, ModuleTree& tree) {
  Module projector{"multi_modal_projector", "projectors", {}, {}, {}};
  const Quantity out = text_width(tree);
  for (const std::string kind : {"acoustic", "semantic"}) {
    TowerConfig audio(document, tree, kind + "_tokenizer_encoder_config");
    if (!audio) return;
    const Samples of = read_samples(*audio, kind == "acoustic" ? 64 : 128);
    add_tower(tree, sample_encoder(*audio, of, kind + "_tokenizer_encoder"));
    Tower(projector, Part::projector)
        .matrix(kind + "_linear_1", of.latent, out, true)
        .norm(kind + "_norm", out, false)
        .matrix(kind + "_linear_2", out, out, true);
  }
  add_tower(tree, std::move(projector));
}

void add_vibevoice(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config"), semantic(document, tree, "semantic_model_config"),
      head(document, tree, "diffusion_head_config");
  document.require(audio && semantic && head,
                   "audio_config, semantic_model_config or diffusion_head_config is missing");
  const Samples heard = read_samples(*audio, 64), said = read_samples(*semantic, 128);
  add_tower(tree, sample_encoder(*audio, heard, "model.audio_tower.encoder"));
  add_tower(tree, sample_decoder(*audio, mirror_image(heard), "model.audio_tower.decoder"));
  add_tower(tree, sample_encoder(*semantic, said, "model.semantic_tokenizer_encoder"));
  add_connector(tree, "model.multi_modal_projector", heard.latent, "linear_1", "act", "linear_2");
  add_connector(tree, "model.semantic_connector", said.latent, "linear_1", "act", "linear_2");
  // The class takes width and latents from the other sections, whatever this one says.
  add_tower(tree,
            sample_denoiser("model.diffusion_head", text_width(tree), heard.latent,
                            head->size("intermediate_size", 4608), read_layers(*head, "num_hidden_layers", 4),
                            head->size("frequency_embedding_size", 256), head->flag("mlp_bias", false),
                            {"timestep_proj.fc1", "timestep_proj.fc2", "linear", "linear_2", "linear_1"}));
  add_bare(tree, "model.latent_scaling_factor", {});
  add_bare(tree, "model.latent_bias_factor", {});
}

// --- as its own code saves it ----------------------------------------------------------------------------------------

namespace {

// "3-3-8", or a list.
std::vector<std::uint64_t> read_depths(ConfigReader& config, const std::string& key,
                                       const std::string& by_default) {
  const auto& text = config.config().text();
  const auto found = text.find(key);
  if (found != text.end() && found->is_array()) return config.numbers(key).value();
  std::vector<std::uint64_t> depths;
  std::istringstream parts(config.text(key, by_default));
  for (std::string part; std::getline(parts, part, '-');) {
    const auto depth = parse_u64(part);
    config.require(depth.has_value(), key + " is no list of numbers");
    depths.push_back(*depth);
  }
  return depths;
}

Samples read_own_samples(ConfigReader& config) {
  Samples of;
  of.own_names = true;
  of.channels = config.size("channels", 1), of.latent = config.size("vae_dim", 64);
  of.filters = config.size("encoder_n_filters", 32);
  of.kernel = config.size("kernel_size", 7), of.last_kernel = config.size("last_kernel_size", 7);
  of.ratios = config.numbers("encoder_ratios").value_or(std::vector<std::uint64_t>{8, 5, 5, 4, 2, 2});
  std::reverse(of.ratios.begin(), of.ratios.end());
  of.depths = read_depths(config, "encoder_depths", "3-3-3-3-3-3-8");
  of.bias = config.flag("conv_bias", true), of.last_norm = !config.flag("disable_last_norm", true);
  of.scaled = config.real("layer_scale_init_value", 1e-6) > 0;
  const std::string norm = config.text("layernorm", "RMSNorm"),
                    mixer = config.text("mixer_layer", "depthwise_conv");
  config.require(norm == "RMSNorm" || norm == "LN", "layernorm is neither RMSNorm nor LN");
  config.require(mixer == "depthwise_conv" || mixer == "conv",
                 "mixer_layer is neither depthwise_conv nor conv");
  config.require(config.text("conv_norm", "none") == "none", "conv_norm is not none, which nobody described");
  of.norm_bias = norm == "LN", of.across_channels = mixer == "conv";
  return of;
}

// decoder_ratios and decoder_depths, and where they are not told the encoder's in a mirror.
Samples read_own_decoder(ConfigReader& config, const Samples& heard) {
  Samples of = mirror_image(heard);
  of.filters = config.size("decoder_n_filters", 32);
  const auto& text = config.config().text();
  if (const auto ratios = config.numbers("decoder_ratios")) of.ratios = *ratios;
  if (const auto told = text.find("decoder_depths"); told != text.end() && told->is_string())
    of.depths = read_depths(config, "decoder_depths", "");
  return of;
}

void add_own_encoders(ConfigReader& document, ModuleTree& tree) {
  TowerConfig acoustic(document, tree, "acoustic_tokenizer_config"),
      semantic(document, tree, "semantic_tokenizer_config");
  document.require(acoustic && semantic, "acoustic_tokenizer_config or semantic_tokenizer_config is missing");
  const Samples heard = read_own_samples(*acoustic), said = read_own_samples(*semantic);
  add_tower(tree, sample_encoder(*acoustic, heard, "model.acoustic_tokenizer.encoder"));
  add_tower(tree, sample_decoder(*acoustic, read_own_decoder(*acoustic, heard),
                                 "model.acoustic_tokenizer.decoder"));
  add_tower(tree, sample_encoder(*semantic, said, "model.semantic_tokenizer.encoder"));
  add_connector(tree, "model.acoustic_connector", heard.latent, "fc1", "norm", "fc2");
  add_connector(tree, "model.semantic_connector", said.latent, "fc1", "norm", "fc2");
}

}  // namespace

// Its checkpoints hold the decoder, too.
void add_own_vibevoice_asr(ConfigReader& document, ModuleTree& tree) {
  add_own_encoders(document, tree);
}

void add_own_vibevoice(ConfigReader& document, ModuleTree& tree) {
  add_own_encoders(document, tree);
  TowerConfig head(document, tree, "diffusion_head_config");
  document.require(static_cast<bool>(head), "diffusion_head_config is missing");
  const Quantity hidden = head->size("hidden_size", 768);
  constexpr double kMostTimes = 1000;
  const double times = head->real("head_ffn_ratio", 3.0, 0, kMostTimes);
  const Quantity wide("hidden_size × head_ffn_ratio",
                      static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * times));
  document.require(wide.value() > 0, "head_ffn_ratio leaves an MLP no width");
  Module denoises = sample_denoiser(
      "model.prediction_head", hidden, head->size("latent_size", 64), wide,
      read_layers(*head, "head_layers", 4), 256, false,
      {"t_embedder.mlp.0", "t_embedder.mlp.2", "adaLN_modulation.1", "linear", "adaLN_modulation.1"});
  add_tower(tree, std::move(denoises));
  Module factors{"model", "factors of the latents", {}, {}, {}};
  add_buffer(factors, "speech_scaling_factor", {});
  add_buffer(factors, "speech_bias_factor", {});
  add_tower(tree, std::move(factors));
}

}  // namespace assay::families
