#include "core/model/families/codec_seanet.h"

#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Layers in a list of their own, whose numbers count activations, too.
class SeanetLayers {
 public:
  SeanetLayers(ConfigReader& config, const Seanet& of, std::string path, std::string title)
      : config_(config), of_(of), module_{std::move(path), std::move(title), {}, {}, {}} {}

  void convolve(const Quantity& in, const Quantity& out, const Quantity& reach) {
    add(std::to_string(next_++), {out, in, reach}, out);
  }
  void stretch(const Quantity& in, const Quantity& out, const Quantity& reach) {
    add(std::to_string(next_++), {in, out, reach}, out);
  }
  void activate() { ++next_; }

  // A narrower pair beside the way around it, so often as the config says.
  void add_residuals(const Quantity& width) {
    const std::uint64_t count = config_.number("num_residual_layers", 1);
    config_.require(count <= kMostSeanetLayers, "num_residual_layers is too large");
    const Quantity reach = config_.size("residual_kernel_size", 3);
    const std::uint64_t compress = config_.size("compress", 2).value();
    config_.require(compress <= width.value(), "compress exceeds the width of a layer");
    const Quantity narrow("width / compress", width.value() / compress);
    for (std::uint64_t i = 0; i < count; ++i, ++next_) {
      add(std::to_string(next_) + ".block.1", {narrow, width, reach}, narrow);
      add(std::to_string(next_) + ".block.3", {width, narrow, 1}, width);
      if (of_.shortcut) add(std::to_string(next_) + ".shortcut", {width, width, 1}, width);
    }
  }

  void remember(const Quantity& width) {
    if (of_.recurrent == 0) return;
    const Quantity gates = Quantity(4) * width;
    Tower into(module_, Part::audio);
    for (std::uint64_t i = 0; i < of_.recurrent; ++i) {
      const std::string name = "layers." + std::to_string(next_) + ".lstm.",
                        ending = "_l" + std::to_string(i);
      into.tensor(name + "weight_ih" + ending, {gates, width})
          .tensor(name + "weight_hh" + ending, {gates, width})
          .tensor(name + "bias_ih" + ending, {gates})
          .tensor(name + "bias_hh" + ending, {gates});
    }
    ++next_;
  }
  Module take() { return std::move(module_); }

 private:
  void add(const std::string& at, const std::vector<Quantity>& shape, const Quantity& out) {
    const std::string name = "layers." + at + ".conv.";
    Tower into(module_, Part::audio);
    if (of_.norm == SeanetNorm::weight)
      into.tensor(name + "weight_g", {shape.front(), 1, 1}).tensor(name + "weight_v", shape);
    else
      into.tensor(name + "weight", shape);
    into.tensor(name + "bias", {out});
    if (of_.norm == SeanetNorm::group) into.norm("layers." + at + ".norm", out, true);
  }
  ConfigReader& config_;
  const Seanet& of_;
  Module module_;
  std::uint64_t next_ = 0;
};

}  // namespace

Seanet read_seanet(ConfigReader& config, const SeanetClass& of) {
  Seanet net;
  net.hidden = config.size("hidden_size", of.hidden), net.channels = config.size("audio_channels", 1);
  net.filters = config.size("num_filters", of.filters);
  net.reach = config.size("kernel_size", 7), net.last_reach = config.size("last_kernel_size", of.last_reach);
  net.shortcut = config.flag("use_conv_shortcut", of.shortcut);
  net.ratios = config.numbers("upsampling_ratios").value_or(of.ratios);
  config.require(!net.ratios.empty() && net.ratios.size() <= 16, "upsampling_ratios is empty, or too long");
  for (const std::uint64_t ratio : net.ratios)
    config.require(ratio > 0 && ratio <= 4096, "upsampling_ratios holds 0, or more than 4096");
  return net;
}

Module seanet_encoder(ConfigReader& config, const Seanet& of, const std::string& path) {
  SeanetLayers layers(config, of, path, "what shortens sound");
  layers.convolve(of.channels, of.filters, of.reach);
  for (std::size_t i = 0; i < of.ratios.size(); ++i) {
    layers.add_residuals(of.wide(i));
    layers.activate();
    layers.convolve(of.wide(i), of.wide(i + 1), Quantity(2 * of.ratios[of.ratios.size() - 1 - i]));
  }
  layers.remember(of.wide(of.ratios.size()));
  layers.activate();
  layers.convolve(of.wide(of.ratios.size()), of.hidden, of.last_reach);
  return layers.take();
}

Module seanet_decoder(ConfigReader& config, const Seanet& of, const std::string& path) {
  SeanetLayers layers(config, of, path, "what makes sound");
  std::size_t doublings = of.ratios.size();
  layers.convolve(of.hidden, of.wide(doublings), of.reach);
  layers.remember(of.wide(doublings));
  for (const std::uint64_t ratio : of.ratios) {
    layers.activate();
    layers.stretch(of.wide(doublings), of.wide(doublings - 1), Quantity(2 * ratio));
    layers.add_residuals(of.wide(--doublings));
  }
  layers.activate();
  layers.convolve(of.filters, of.channels, of.last_reach);
  return layers.take();
}

}  // namespace assay::families
