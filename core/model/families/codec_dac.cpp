// DAC, Descript's codec of sound: convolutions between snakes on either side, and code books of few dimensions. Source:
// transformers 5.23, whose convolutions have one weight each.
#include <algorithm>

#include "core/model/families/all_speakers.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Sound {
  Tower into;
  void convolve(const std::string& path, const Quantity& in, const Quantity& out, std::uint64_t reach) {
    into.tensor(path + ".weight", {out, in, reach}).tensor(path + ".bias", {out});
  }
  // It makes more of fewer channels: stored the other way around.
  void widen(const std::string& path, const Quantity& in, const Quantity& out, std::uint64_t reach) {
    into.tensor(path + ".weight", {in, out, reach}).tensor(path + ".bias", {out});
  }
  void snake(const std::string& path, const Quantity& width) { into.tensor(path + ".alpha", {1, width, 1}); }
};

constexpr std::uint64_t kReach = 7;  // by the class

void add_residuals(Sound& sound, const std::string& path, const Quantity& width) {
  for (const std::string unit : {"res_unit1.", "res_unit2.", "res_unit3."}) {
    sound.snake(path + unit + "snake1", width);
    sound.convolve(path + unit + "conv1", width, width, kReach);
    sound.snake(path + unit + "snake2", width);
    sound.convolve(path + unit + "conv2", width, width, 1);
  }
}

std::vector<Quantity> read_ratios(ConfigReader& config, const std::string& key,
                                  const std::vector<std::uint64_t>& class_default) {
  auto ratios = stage_sizes(config, key, class_default);
  config.require(ratios.size() <= 20, key + " names too many steps");
  for (const Quantity& ratio : ratios) config.require(ratio.value() <= 100'000, key + " holds no ratio");
  return ratios;
}

// Each block halves the rate by its ratio, and doubles the channels; gives how many there are in the end.
Quantity add_dac_encoder(ConfigReader& config, ModuleTree& tree, const std::vector<Quantity>& ratios) {
  Sound sound{Tower(add_image_module(tree, "encoder", "encoder of sound"), Part::audio)};
  Quantity width = config.size("encoder_hidden_size", 64);
  sound.convolve("conv1", 1, width, kReach);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::string path = "block." + std::to_string(i) + ".";
    const Quantity out = Quantity(2) * width;
    add_residuals(sound, path, width);
    sound.snake(path + "snake1", width);
    sound.convolve(path + "conv1", width, out, 2 * ratios[i].value());
    width = Quantity("channels", out.value());
  }
  sound.snake("snake1", width);
  constexpr std::uint64_t kLastReach = 3;  // by the class
  sound.convolve("conv2", width, width, kLastReach);
  return width;
}

void add_dac_decoder(ConfigReader& config, ModuleTree& tree, const Quantity& coded,
                     const std::vector<Quantity>& ratios) {
  Sound sound{Tower(add_image_module(tree, "decoder", "decoder of sound"), Part::audio)};
  Quantity width = config.size("decoder_hidden_size", 1536);
  sound.convolve("conv1", coded, width, kReach);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::string path = "block." + std::to_string(i) + ".";
    const Quantity out("channels", width.value() / 2);
    config.require(out.value() > 0, "decoder_hidden_size is too narrow for upsampling_ratios");
    sound.snake(path + "snake1", width);
    sound.widen(path + "conv_t1", width, out, 2 * ratios[i].value());
    add_residuals(sound, path, out);
    width = out;
  }
  sound.snake("snake1", width);
  sound.convolve("conv2", width, 1, kReach);
}

void describe_dac(ConfigReader& config, ModuleTree& tree) {
  const auto down = read_ratios(config, "downsampling_ratios", {2, 4, 8, 8});
  std::vector<Quantity> up(down.rbegin(), down.rend());  // as the class derives them
  const Quantity coded = add_dac_encoder(config, tree, down);
  add_dac_decoder(config, tree, coded, up);
  const Quantity books = config.size("n_codebooks", 9), dim = config.size("codebook_dim", 8);
  config.require(books.value() <= 1000, "n_codebooks is no number of books");
  Module book = layers("quantizer.quantizers.{layer}", "code books", all_layers(books));
  Sound sound{Tower(book, Part::audio)};
  sound.convolve("in_proj", coded, dim, 1);
  sound.convolve("out_proj", dim, coded, 1);
  sound.into.tensor("codebook.weight", {config.size("codebook_size", 1024), dim});
  tree.modules.push_back(std::move(book));
  tree.hidden_size = coded.value();
  tree.layers = down.size() + up.size();
}

constexpr std::string_view kDacArchitectures[] = {"DacModel"}, kDacTypes[] = {"dac"};

}  // namespace

const Family kDac = {"dac", "DAC", kDacArchitectures, kDacTypes, {}, describe_dac};

}  // namespace assay::families
