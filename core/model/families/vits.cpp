// VITS (MMS reads aloud with it, in over a thousand languages): an encoder of letters, flows that turn what it says into a
// spectrum's hidden states, a HiFi-GAN that makes samples of these, what tells how long each letter lasts, and an encoder of
// spectra, which releases hold and only training uses. And the HiFi-GAN of SpeechT5 by itself. Source: transformers 5.23;
// weights in two parts are named as releases have them.
#include "core/model/families/all_speakers.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/unit_vocoder.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Vits {
  Quantity hidden, flow, speaker;
  bool speaks_as = false;  // there are speakers, whose vectors enter everywhere
};

std::uint64_t few(ConfigReader& config, const char* key, std::uint64_t class_default) {
  const std::uint64_t count = config.size(key, class_default).value();
  config.require(count <= 1000, std::string(key) + " is no number of layers");
  return count;
}

void convolve(Tower& into, const std::string& name, const Quantity& in, const Quantity& out,
              const Quantity& reach = 1) {
  into.tensor(name + ".weight", {out, in, reach}).tensor(name + ".bias", {out});
}

// A weight as a direction and a length for each channel (weight_norm).
void convolve_normed(Tower& into, const std::string& name, const Quantity& in, const Quantity& out,
                     const Quantity& reach = 1) {
  into.tensor(name + ".weight_g", {out, 1, 1})
      .tensor(name + ".weight_v", {out, in, reach})
      .tensor(name + ".bias", {out});
}

Module vits_layers(ConfigReader& config, const Vits& of) {
  const Quantity wide = config.size("ffn_dim", 768), reach = config.size("ffn_kernel_size", 3);
  const Quantity each =
      config.quotient(of.hidden, config.size("num_attention_heads", 2), "hidden_size / num_attention_heads");
  const bool bias = config.flag("use_bias", true);
  Module layer = layers("text_encoder.encoder.layers.{layer}", "layers over letters",
                        all_layers(read_layers(config, "num_hidden_layers", 6)));
  Tower block(layer, Part::audio);
  for (const char* name : {"attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.out_proj"})
    block.matrix(name, of.hidden, of.hidden, bias);
  if (const std::uint64_t window = config.number("window_size", 4); window > 0) {
    config.require(window <= 1'000'000, "window_size is no size of a window");
    const Quantity distances("2 window_size + 1", 2 * window + 1);
    block.tensor("attention.emb_rel_k", {1, distances, each})
        .tensor("attention.emb_rel_v", {1, distances, each});
  }
  block.norm("layer_norm", of.hidden, true).norm("final_layer_norm", of.hidden, true);
  convolve(block, "feed_forward.conv_1", of.hidden, wide, reach);
  convolve(block, "feed_forward.conv_2", wide, of.hidden, reach);
  return layer;
}

// A WaveNet: gated convolutions, each of which adds to what goes on and to what comes out; the last has nothing to go on.
void add_wavenet(ConfigReader& config, Tower& into, const std::string& path, const Vits& of,
                 std::uint64_t depth) {
  const Quantity both = Quantity(2) * of.hidden, reach = config.size("wavenet_kernel_size", 5);
  for (std::uint64_t i = 0; i < depth; ++i) {
    const std::string number = std::to_string(i);
    convolve_normed(into, path + ".in_layers." + number, of.hidden, both, reach);
    convolve_normed(into, path + ".res_skip_layers." + number, of.hidden, i + 1 < depth ? both : of.hidden);
  }
  if (of.speaks_as) convolve_normed(into, path + ".cond_layer", of.speaker, Quantity(depth) * both);
}

void add_coupling(ConfigReader& config, ModuleTree& tree, const Vits& of) {
  config.require(of.flow.value() > 1, "flow_size has no half");
  const Quantity half("flow_size / 2", of.flow.value() / 2);
  const std::uint64_t flows = few(config, "prior_encoder_num_flows", 4),
                      depth = few(config, "prior_encoder_num_wavenet_layers", 4);
  Tower into(add_image_module(tree, "flow", "flows"), Part::audio);
  for (std::uint64_t i = 0; i < flows; ++i) {
    const std::string path = "flows." + std::to_string(i);
    convolve(into, path + ".conv_pre", half, of.hidden);
    add_wavenet(config, into, path + ".wavenet", of, depth);
    convolve(into, path + ".conv_post", of.hidden, half);
  }
}

// Convolutions within each channel and across them, in turn.
void add_separable(ConfigReader& config, Tower& into, const std::string& path, const Vits& of) {
  const Quantity reach = config.size("duration_predictor_kernel_size", 3);
  const std::uint64_t depth = few(config, "depth_separable_num_layers", 3);
  for (std::uint64_t i = 0; i < depth; ++i) {
    const std::string number = "." + std::to_string(i);
    convolve(into, path + ".convs_dilated" + number, 1, of.hidden, reach);
    convolve(into, path + ".convs_pointwise" + number, of.hidden, of.hidden);
    into.norm(path + ".norms_1" + number, of.hidden, true).norm(path + ".norms_2" + number, of.hidden, true);
  }
}

// Flows of splines: the first shifts and scales.
void add_splines(ConfigReader& config, Tower& into, const std::string& path, const Vits& of) {
  const Quantity channels = config.size("depth_separable_channels", 2);
  config.require(channels.value() > 1, "depth_separable_channels has no half");
  const Quantity half("depth_separable_channels / 2", channels.value() / 2),
      bins = config.size("duration_predictor_flow_bins", 10),
      told = half * Quantity("3 duration_predictor_flow_bins - 1", 3 * bins.value() - 1);
  into.tensor(path + ".0.translate", {channels, 1}).tensor(path + ".0.log_scale", {channels, 1});
  const std::uint64_t flows = few(config, "duration_predictor_num_flows", 4);
  for (std::uint64_t i = 1; i <= flows; ++i) {
    const std::string flow = path + "." + std::to_string(i);
    convolve(into, flow + ".conv_pre", half, of.hidden);
    add_separable(config, into, flow + ".conv_dds", of);
    convolve(into, flow + ".conv_proj", of.hidden, told);
  }
}

void add_durations(ConfigReader& config, ModuleTree& tree, const Vits& of) {
  Tower into(add_image_module(tree, "duration_predictor", "what tells how long letters last"), Part::audio);
  if (of.speaks_as) convolve(into, "cond", of.speaker, of.hidden);
  if (!config.flag("use_stochastic_duration_prediction", true)) {
    const Quantity between = config.size("duration_predictor_filter_channels", 256),
                   reach = config.size("duration_predictor_kernel_size", 3);
    convolve(into, "conv_1", of.hidden, between, reach);
    convolve(into, "conv_2", between, between, reach);
    convolve(into, "proj", between, 1);
    into.norm("norm_1", between, true).norm("norm_2", between, true);
    return;
  }
  for (const std::string& side :
       {std::string(), std::string("post_")}) {  // of letters, and of what was measured
    convolve(into, side + "conv_pre", side.empty() ? of.hidden : Quantity(1), of.hidden);
    add_separable(config, into, side + "conv_dds", of);
    convolve(into, side + "conv_proj", of.hidden, of.hidden);
    add_splines(config, into, side + "flows", of);
  }
}

void describe_vits(ConfigReader& config, ModuleTree& tree) {
  Vits of{config.size("hidden_size", 192), config.size("flow_size", 192), 1};
  if (const std::uint64_t width = config.number("speaker_embedding_size", 0); width > 0)
    of.speaks_as = true, of.speaker = {"speaker_embedding_size", width};
  tree.hidden_size = of.hidden.value();
  tree.layers = read_layers(config, "num_hidden_layers", 6).value();
  const Quantity twice = Quantity(2) * of.flow;
  Tower letters(add_image_module(tree, "text_encoder", "letters"), Part::audio);
  letters.tensor("embed_tokens.weight", {config.size("vocab_size", 38), of.hidden});
  convolve(letters, "project", of.hidden, twice);
  tree.modules.push_back(vits_layers(config, of));
  add_coupling(config, tree, of);
  Tower samples(add_image_module(tree, "decoder", "what makes samples"), Part::audio);
  add_hifi_gan(
      config, samples,
      {.path = "", .in = of.flow, .longer = {8, 8, 2, 2}, .reaches = {16, 16, 4, 4}, .last_bias = false});
  if (of.speaks_as) convolve(samples, "cond", of.speaker, config.size("upsample_initial_channel", 512));
  add_durations(config, tree, of);
  if (const std::uint64_t speakers = config.number("num_speakers", 1); speakers > 1) {
    config.require(of.speaks_as,
                   "num_speakers is " + std::to_string(speakers) + ", speaker_embedding_size 0");
    Tower(add_image_module(tree, "", "speakers"), Part::audio)
        .tensor("embed_speaker.weight", {config.size("num_speakers"), of.speaker});
  }
  Tower spectra(add_image_module(tree, "posterior_encoder", "spectra, in training"), Part::audio);
  convolve(spectra, "conv_pre", config.size("spectrogram_bins", 513), of.hidden);
  add_wavenet(config, spectra, "wavenet", of, few(config, "posterior_encoder_num_wavenet_layers", 16));
  convolve(spectra, "conv_proj", of.hidden, twice);
}

void describe_speecht5_hifi_gan(ConfigReader& config, ModuleTree& tree) {
  const Quantity bins = config.size("model_in_dim", 80);
  tree.hidden_size = config.size("upsample_initial_channel", 512).value();
  tree.layers = stage_sizes(config, "upsample_rates", {4, 4, 4, 4}).size();
  Module& made = add_image_module(tree, "", "what makes samples");
  Tower into(made, Part::audio);
  add_hifi_gan(config, into, {.path = "", .in = bins, .longer = {4, 4, 4, 4}, .reaches = {8, 8, 8, 8}});
  for (const char* seen : {"mean", "scale"}) add_buffer(made, seen, {bins.value()});  // of spectra
}

constexpr std::string_view kVitsArchitectures[] = {"VitsModel"}, kVitsTypes[] = {"vits"},
                           kHifiGanArchitectures[] = {"SpeechT5HifiGan"},
                           kHifiGanTypes[] = {"speecht5_hifigan", "hifigan"};

}  // namespace

const Family kVits = {"vits", "VITS", kVitsArchitectures, kVitsTypes, {}, describe_vits};
const Family kSpeecht5HifiGan = {
    "speecht5_hifigan",        "SpeechT5's HiFi-GAN", kHifiGanArchitectures, kHifiGanTypes, {},
    describe_speecht5_hifi_gan};

}  // namespace assay::families
