// Encoders of images for small machines, of convolutions that look at one channel each and of those that look at one place:
// MobileNet, its second version, and EfficientNet. Source: transformers 5.23; what batch norms have seen is held by
// checkpoints and not counted.
#include <cmath>

#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/resnet.h"

namespace assay::families {
namespace {

// By how much the channels that a class knows are multiplied.
double read_multiplier(ConfigReader& config, const std::string& key, double class_default) {
  return config.real(key, class_default, 1e-3, 1000);
}

// MobileNet: stem, then thirteen pairs of a convolution of neighbours and one of a place.
void describe_mobilenet_v1(ConfigReader& config, ModuleTree& tree) {
  constexpr int kPairs = 13;
  const std::string prefix = add_prefix(config, tree, {"mobilenet_v1.", "MobileNetV1"});
  const double multiplier = read_multiplier(config, "depth_multiplier", 1);
  const std::uint64_t least = config.size("min_depth", 8).value();
  std::uint64_t depth = 32;
  const auto channels = [&] {
    const auto multiplied = static_cast<std::uint64_t>(static_cast<double>(depth) * multiplier);
    return Quantity("channels", std::max(multiplied, least));
  };
  Quantity width = channels();
  Module& layer = add_image_module(tree, trimmed(prefix), "convolutions");
  add_resnet_convolution(layer, "conv_stem.", config.size("num_channels", 3), width, 3);
  for (int i = 0; i < kPairs; ++i) {
    const Quantity in = width;
    if (i == 0 || i == 1 || i == 3 || i == 5 || i == 11)
      depth *= 2;  // by the class: where sides are halved, too
    width = channels();
    add_resnet_convolution(layer, "layer." + std::to_string(2 * i) + ".", 1, in, 3);
    add_resnet_convolution(layer, "layer." + std::to_string(2 * i + 1) + ".", in, width, 1);
  }
  tree.layers = 2 * kPairs;
  tree.hidden_size = width.value();
  if (!prefix.empty()) add_image_classifier(config, tree, {"classifier"}, width);
}

// What the second version multiplies channels by, and what they are divisible by.
struct MobileChannels {
  double multiplier, expands;
  std::uint64_t divisor, least;
  Quantity of(std::uint64_t channels) const { return divisible(static_cast<double>(channels) * multiplier); }
  Quantity widened(const Quantity& in) const { return divisible(static_cast<double>(in.value()) * expands); }

 private:
  Quantity divisible(double channels) const {
    return divisible_channels(std::nearbyint(channels), divisor, least).named("channels");
  }
};

void add_mobile_stem(ConfigReader& config, Module& into, const MobileChannels& channels) {
  const Quantity in = channels.of(32);
  add_resnet_convolution(into, "conv_stem.first_conv.", config.size("num_channels", 3), in, 3);
  if (!config.flag("first_layer_is_expansion", true))
    add_resnet_convolution(into, "conv_stem.expand_1x1.", in, in, 1);
  add_resnet_convolution(into, "conv_stem.conv_3x3.", 1, in, 3);
  add_resnet_convolution(into, "conv_stem.reduce_1x1.", in, channels.of(16), 1);
}

// What cuts out (DeepLab v3+): over the last layers' channels.
void add_mobile_segments(ConfigReader& config, ModuleTree& tree, const Quantity& in) {
  const Quantity inside = 256;  // by the class
  Module& head = add_image_module(tree, "segmentation_head", "what cuts out");
  add_resnet_convolution(head, "conv_pool.", in, inside, 1);
  add_resnet_convolution(head, "conv_aspp.", in, inside, 1);
  add_resnet_convolution(head, "conv_projection.", Quantity(2) * inside, inside, 1);
  add_convolution(head, "classifier.convolution", {inside, label_count(config), 1, true});
}

void describe_mobilenet_v2(ConfigReader& config, ModuleTree& tree) {
  const std::string prefix = add_prefix(config, tree, {"mobilenet_v2.", "MobileNetV2"});
  const MobileChannels channels = {
      read_multiplier(config, "depth_multiplier", 1), read_multiplier(config, "expand_ratio", 6),
      config.size("depth_divisible_by", 8).value(), config.size("min_depth", 8).value()};
  config.require(channels.divisor <= 1'000'000, "depth_divisible_by is absurdly large");
  constexpr std::uint64_t kChannels[] = {16, 24, 24, 32, 32,  32,  64,  64, 64,
                                         64, 96, 96, 96, 160, 160, 160, 320};  // by the class
  Module& layer = add_image_module(tree, trimmed(prefix), "convolutions");
  add_mobile_stem(config, layer, channels);
  const std::size_t layers = std::size(kChannels) - 1;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string path = "layer." + std::to_string(i) + ".";
    const Quantity in = channels.of(kChannels[i]);
    const Quantity wide = channels.widened(in);
    add_inverted_residual(layer, path, in, wide, channels.of(kChannels[i + 1]));
  }
  const Quantity last = channels.of(kChannels[layers]);
  const bool fine = config.flag("finegrained_output", true) && channels.multiplier < 1;
  const Quantity width = fine ? Quantity(1280) : channels.of(1280);
  add_resnet_convolution(layer, "conv_1x1.", last, width, 1);
  tree.layers = layers;
  tree.hidden_size = width.value();
  if (config.config().architecture().ends_with("ForSemanticSegmentation"))
    add_mobile_segments(config, tree, last);
  else if (!prefix.empty())
    add_image_classifier(config, tree, {"classifier"}, width);
}

// EfficientNet: all sizes are those of its smallest, multiplied.
struct EfficientSizes {
  double width, depth, squeezes;
  std::uint64_t divisor;
  Quantity of(std::uint64_t channels) const {
    return divisible_channels(static_cast<double>(channels) * width, divisor, divisor).named("channels");
  }
};

struct EfficientBlock {
  Quantity in, out, reach;
  std::uint64_t expands;
};

void add_efficient_block(Module& into, const std::string& path, const EfficientBlock& of, double squeezes) {
  const Quantity wide = of.expands == 1 ? of.in : of.in * Quantity("expand_ratios", of.expands);
  if (of.expands != 1)
    add_normed(into, path + "expansion.expand_conv", path + "expansion.expand_bn", {of.in, wide});
  add_normed(into, path + "depthwise_conv.depthwise_conv", path + "depthwise_conv.depthwise_norm",
             {1, wide, of.reach});
  const auto narrow = static_cast<std::uint64_t>(static_cast<double>(of.in.value()) * squeezes);
  const Quantity squeezed("squeezed", std::max<std::uint64_t>(1, narrow));
  add_convolution(into, path + "squeeze_excite.reduce", {wide, squeezed, 1, true});
  add_convolution(into, path + "squeeze_excite.expand", {squeezed, wide, 1, true});
  add_normed(into, path + "projection.project_conv", path + "projection.project_bn", {wide, of.out});
}

// Gives the channels behind the last block.
Quantity add_efficient_blocks(ConfigReader& config, ModuleTree& tree, Module& into,
                              const EfficientSizes& sizes) {
  const auto in = stage_sizes(config, "in_channels", {32, 16, 24, 40, 80, 112, 192}),
             out = stage_sizes(config, "out_channels", {16, 24, 40, 80, 112, 192, 320}),
             reach = stage_sizes(config, "kernel_sizes", {3, 3, 5, 3, 5, 5, 3}),
             repeats = stage_sizes(config, "num_block_repeats", {1, 2, 2, 3, 3, 4, 1}),
             expands = stage_sizes(config, "expand_ratios", {1, 6, 6, 6, 6, 6, 6});
  for (const auto* list : {&out, &reach, &repeats, &expands})
    config.require(list->size() == in.size(), "lists of in_channels and its like are of different lengths");
  Quantity last;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double count = std::ceil(sizes.depth * static_cast<double>(repeats[i].value()));
    config.require(count <= 1000, "num_block_repeats holds what is no number of blocks");
    last = sizes.of(out[i].value());
    for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(count); ++j) {
      add_efficient_block(into, "encoder.blocks." + std::to_string(tree.layers++) + ".",
                          {j == 0 ? sizes.of(in[i].value()) : last, last, reach[i], expands[i].value()},
                          sizes.squeezes);
    }
  }
  return last;
}

void describe_efficientnet(ConfigReader& config, ModuleTree& tree) {
  const std::string prefix = add_prefix(config, tree, {"efficientnet.", "EfficientNet"});
  const EfficientSizes sizes = {
      read_multiplier(config, "width_coefficient", 2), read_multiplier(config, "depth_coefficient", 3.1),
      read_multiplier(config, "squeeze_expansion_ratio", 0.25), config.size("depth_divisor", 8).value()};
  config.require(sizes.divisor <= 1'000'000, "depth_divisor is absurdly large");
  Module& all = add_image_module(tree, trimmed(prefix), "convolutions");
  add_normed(all, "embeddings.convolution", "embeddings.batchnorm",
             {config.size("num_channels", 3), sizes.of(32), 3});
  const Quantity last = add_efficient_blocks(config, tree, all, sizes);
  const Quantity width = config.size("hidden_dim", 2560);
  add_convolution(all, "encoder.top_conv", {last, sizes.of(1280)});
  add_batch_norm(all, "encoder.top_bn", width);
  tree.hidden_size = width.value();
  if (!prefix.empty()) add_image_classifier(config, tree, {"classifier"}, width);
}

constexpr std::string_view kMobile1Architectures[] = {"MobileNetV1Model",
                                                      "MobileNetV1ForImageClassification"},
                           kMobile1Types[] = {"mobilenet_v1"},
                           kMobile2Architectures[] = {"MobileNetV2Model", "MobileNetV2ForImageClassification",
                                                      "MobileNetV2ForSemanticSegmentation"},
                           kMobile2Types[] = {"mobilenet_v2"},
                           kEfficientArchitectures[] = {"EfficientNetModel",
                                                        "EfficientNetForImageClassification"},
                           kEfficientTypes[] = {"efficientnet"};

}  // namespace

void add_inverted_residual(Module& module, const std::string& path, const Quantity& in, const Quantity& wide,
                           const Quantity& out) {
  add_resnet_convolution(module, path + "expand_1x1.", in, wide, 1);
  add_resnet_convolution(module, path + "conv_3x3.", 1, wide, 3);
  add_resnet_convolution(module, path + "reduce_1x1.", wide, out, 1);
}

const Family kMobileNetV1 = {"mobilenet_v1",       "MobileNet v1", kMobile1Architectures, kMobile1Types, {},
                             describe_mobilenet_v1};
const Family kMobileNetV2 = {"mobilenet_v2",       "MobileNet v2", kMobile2Architectures, kMobile2Types, {},
                             describe_mobilenet_v2};
const Family kEfficientNet = {
    "efficientnet", "EfficientNet", kEfficientArchitectures, kEfficientTypes, {}, describe_efficientnet};

}  // namespace assay::families
