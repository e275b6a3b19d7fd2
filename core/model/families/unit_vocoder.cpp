// Source: transformers 5.24 (SeamlessM4TCodeHifiGan).
#include "core/model/families/unit_vocoder.h"

#include <nlohmann/json.hpp>

#include "core/model/families/image_parts.h"

namespace assay::families {

using namespace blocks;

void add_lengths(Tower& into, const std::string& path, const Lengths& of) {
  into.tensor(path + ".conv1.weight", {of.between, of.in, of.reach})
      .tensor(path + ".conv1.bias", {of.between})
      .norm(path + ".ln1", of.between, true)
      .tensor(path + ".conv2.weight", {of.between, of.between, of.reach})
      .tensor(path + ".conv2.bias", {of.between})
      .norm(path + ".ln2", of.between, true)
      .matrix(path + ".proj", of.between, 1, true);
}

namespace {

// How many convolutions a block of each reach has: as many as there are dilations.
std::vector<std::size_t> block_depths(ConfigReader& config, std::size_t kernels) {
  const ParsedJson& text = config.config().text();
  const auto said = text.find("resblock_dilation_sizes");
  if (said == text.end() || said->is_null()) return std::vector<std::size_t>(kernels, 3);
  config.require(said->is_array() && said->size() == kernels,
                 "resblock_dilation_sizes is not as long as resblock_kernel_sizes");
  std::vector<std::size_t> depths;
  for (const ParsedJson& dilations : *said) {
    config.require(dilations.is_array() && dilations.size() <= 100,
                   "resblock_dilation_sizes holds what is no list");
    depths.push_back(dilations.size());
  }
  return depths;
}

void convolve_samples(Tower& into, const std::string& name, const Quantity& in, const Quantity& out,
                      const Quantity& reach) {
  into.tensor(name + ".weight", {out, in, reach}).tensor(name + ".bias", {out});
}

}  // namespace

void add_hifi_gan(ConfigReader& config, Tower& into, const HifiGan& of) {
  constexpr std::uint64_t kEnds = 7;  // reach of the first and last convolution, by the class
  const auto longer = stage_sizes(config, "upsample_rates", of.longer),
             reaches = stage_sizes(config, "upsample_kernel_sizes", of.reaches),
             blocks = stage_sizes(config, "resblock_kernel_sizes", {3, 7, 11});
  config.require(longer.size() == reaches.size(),
                 "upsample_rates and upsample_kernel_sizes are of different lengths");
  const auto depths = block_depths(config, blocks.size());
  std::uint64_t channels = config.size("upsample_initial_channel", 512).value();
  const auto width = [&] { return Quantity("channels", channels); };
  convolve_samples(into, of.path + "conv_pre", of.in, width(), kEnds);
  for (std::size_t i = 0; i < reaches.size(); ++i) {
    config.require(channels > 1, "upsample_initial_channel cannot be halved so often");
    const Quantity before = width();
    channels /= 2;
    const std::string up = of.path + "upsampler." + std::to_string(i);
    into.tensor(up + ".weight", {before, width(), reaches[i]}).tensor(up + ".bias", {width()});
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      const std::string path = of.path + "resblocks." + std::to_string(i * blocks.size() + j);
      for (const char* half : {".convs1.", ".convs2."})
        for (std::size_t k = 0; k < depths[j]; ++k)
          convolve_samples(into, path + half + std::to_string(k), width(), width(), blocks[j]);
    }
  }
  into.tensor(of.path + "conv_post.weight", {1, width(), kEnds});
  if (of.last_bias) into.tensor(of.path + "conv_post.bias", {1});
}

Module unit_vocoder(ConfigReader& config, std::string path) {
  const Quantity unit = config.size("unit_embed_dim", 1280), language = config.size("lang_embed_dim", 256),
                 speaker = config.size("spkr_embed_dim", 256);
  Module vocoder{std::move(path), "what makes samples of units", {}, {}, {}};
  Tower into(vocoder, Part::audio);
  into.tensor("unit_embedding.weight", {config.size("unit_hifi_gan_vocab_size", 10000), unit})
      .tensor("speaker_embedding.weight", {config.size("vocoder_num_spkrs", 200), speaker})
      .tensor("language_embedding.weight", {config.size("vocoder_num_langs", 36), language});
  add_lengths(into, "dur_predictor", {unit, unit, config.size("variance_predictor_kernel_size", 3)});
  add_hifi_gan(config, into,
               {.path = "hifi_gan.",
                .in = unit + language + speaker,
                .longer = {5, 4, 4, 2, 2},
                .reaches = {11, 8, 8, 4, 4}});
  return vocoder;
}

}  // namespace assay::families
