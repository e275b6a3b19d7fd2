// MobileViT and its second version: MobileNet's layers, and between them transformers over patches of what these made.
// Source: transformers 5.23.
#include <algorithm>
#include <cmath>

#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/resnet.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kMobileDivisor = 8;  // of most numbers of channels

// One of its three transformers: `in` channels become `out` as sides are halved; `inside` are those of the layers.
struct Perceiving {
  Quantity in, out, inside;
  std::uint64_t layers;
};

struct MobileVit {
  std::string prefix;
  std::vector<Quantity> widths;  // of the stem, and behind each of five layers
  std::vector<Perceiving> perceiving;
  double expands;
  Quantity reach;
};

void add_halving(Module& module, const std::string& path, const MobileVit& of, const Quantity& in,
                 const Quantity& out) {
  const double wide = std::nearbyint(static_cast<double>(in.value()) * of.expands);
  add_inverted_residual(module, path, in,
                        divisible_channels(wide, kMobileDivisor, kMobileDivisor).named("channels"), out);
}

// Stem and the two layers of convolutions, of one block and of `second` ones.
Module& add_mobile_entry(ConfigReader& config, ModuleTree& tree, const MobileVit& of, int second) {
  Module& all = add_image_module(tree, trimmed(of.prefix), "convolutions");
  add_resnet_convolution(all, "conv_stem.", config.size("num_channels", 3), of.widths[0], 3);
  add_halving(all, "encoder.layer.0.layer.0.", of, of.widths[0], of.widths[1]);
  for (int i = 0; i < second; ++i)
    add_halving(all, "encoder.layer.1.layer." + std::to_string(i) + ".", of, of.widths[i == 0 ? 1 : 2],
                of.widths[2]);
  return all;
}

// ViT's layers, named as BERT does.
Module perceiving_layers(ConfigReader& config, const std::string& path, const Perceiving& of, double widens) {
  const auto wide = static_cast<std::uint64_t>(static_cast<double>(of.inside.value()) * widens);
  config.require(wide > 0, "mlp_ratio leaves no width");
  return vit_layers(config, path, Quantity(of.layers), vit_block(of.inside, {"mlp_ratio × width", wide}),
                    Part::vision);
}

// What tells classes of places (DeepLab v3), behind the last layer's channels.
void add_segments(ConfigReader& config, ModuleTree& tree, const Quantity& in, std::uint64_t inside_default) {
  constexpr int kReaching = 3;  // atrous_rates, of which the classes want as many
  const Quantity inside = config.size("aspp_out_channels", inside_default);
  Module& head = add_image_module(tree, "segmentation_head", "what cuts out");
  add_resnet_convolution(head, "aspp.convs.0.", in, inside, 1);
  for (int i = 1; i <= kReaching; ++i)
    add_resnet_convolution(head, "aspp.convs." + std::to_string(i) + ".", in, inside, 3);
  add_resnet_convolution(head, "aspp.convs." + std::to_string(kReaching + 1) + ".conv_1x1.", in, inside, 1);
  add_resnet_convolution(head, "aspp.project.", Quantity(kReaching + 2) * inside, inside, 1);
  add_convolution(head, "classifier.convolution", {inside, label_count(config), 1, true});
}

bool cuts_out(const ConfigReader& config) {
  return config.config().architecture().ends_with("ForSemanticSegmentation");
}

void describe_mobilevit(ConfigReader& config, ModuleTree& tree) {
  MobileVit of{add_prefix(config, tree, {"mobilevit.", "MobileViT"}),
               stage_sizes(config, "neck_hidden_sizes", {16, 32, 64, 96, 128, 160, 640}),
               {},
               config.real("expand_ratio", 4, 1e-3, 1000),
               config.size("conv_kernel_size", 3)};
  const auto inside = stage_sizes(config, "hidden_sizes", {144, 192, 240});
  config.require(of.widths.size() == 7, "neck_hidden_sizes are not seven");
  config.require(inside.size() == 3, "hidden_sizes are not three");
  constexpr std::uint64_t kLayers[] = {2, 4, 3};  // by the class
  const double widens = config.real("mlp_ratio", 2, 1e-3, 1000);
  Module& all = add_mobile_entry(config, tree, of, 3);
  std::vector<Module> transformers;
  for (std::size_t i = 0; i < 3; ++i) {
    const Perceiving part = {of.widths[i + 2], of.widths[i + 3], inside[i], kLayers[i]};
    const std::string path = "encoder.layer." + std::to_string(i + 2) + ".";
    add_halving(all, path + "downsampling_layer.", of, part.in, part.out);
    for (const char* name : {"conv_kxk.", "fusion."})
      add_normed(all, path + name + "convolution", path + name + "normalization",
                 {name[0] == 'f' ? Quantity(2) * part.out : part.out, part.out, of.reach});
    add_convolution(all, path + "conv_1x1.convolution", {part.out, part.inside});
    add_resnet_convolution(all, path + "conv_projection.", part.inside, part.out, 1);
    Tower(all, Part::vision).norm(path + "layernorm", part.inside, true);
    transformers.push_back(
        perceiving_layers(config, of.prefix + path + "transformer.layer.{layer}", part, widens));
    tree.layers += part.layers;
  }
  if (!cuts_out(config)) add_resnet_convolution(all, "conv_1x1_exp.", of.widths[5], of.widths[6], 1);
  for (Module& transformer : transformers) tree.modules.push_back(std::move(transformer));
  tree.hidden_size = of.widths[6].value();
  if (cuts_out(config))
    add_segments(config, tree, of.widths[5], 256);
  else if (!of.prefix.empty())
    add_image_classifier(config, tree, {"classifier"}, of.widths[6]);
}

// A layer of the second version: attention to one place, whose weight is one number, and an MLP, of convolutions.
Module separable_layers(ConfigReader& config, const std::string& path, const Perceiving& of) {
  constexpr std::uint64_t kMultiple = 16;  // of which the MLP's width is one
  const Quantity& hidden = of.inside;
  const Quantity widened = config.size("ffn_multiplier", 2) * hidden;
  const Quantity wide("ffn_multiplier × width", widened.value() / kMultiple * kMultiple);
  config.require(wide.value() > 0, "ffn_multiplier leaves no width");
  Module layer = layers(path, "layers", all_layers(Quantity(of.layers)));
  Tower(layer, Part::vision).norm("layernorm_before", hidden, true).norm("layernorm_after", hidden, true);
  add_convolution(layer, "attention.qkv_proj.convolution",
                  {hidden, Quantity(1) + Quantity(2) * hidden, 1, true});
  add_convolution(layer, "attention.out_proj.convolution", {hidden, hidden, 1, true});
  add_convolution(layer, "ffn.conv1.convolution", {hidden, wide, 1, true});
  add_convolution(layer, "ffn.conv2.convolution", {wide, hidden, 1, true});
  return layer;
}

void describe_mobilevit2(ConfigReader& config, ModuleTree& tree) {
  const double multiplier = config.real("width_multiplier", 1, 1e-3, 1000);
  const auto multiplied = [&](double channels, std::uint64_t divisor = kMobileDivisor) {
    return divisible_channels(channels * multiplier, divisor, divisor).named("channels");
  };
  MobileVit of{
      add_prefix(config, tree, {"mobilevitv2.", "MobileViTV2"}),
      {divisible_channels(std::clamp(32 * multiplier, 16.0, 64.0), kMobileDivisor, 16).named("channels"),
       multiplied(64, 16), multiplied(128), multiplied(256), multiplied(384), multiplied(512)},
      {},
      config.real("expand_ratio", 2, 1e-3, 1000),
      config.size("conv_kernel_size", 3)};
  const auto counts = stage_sizes(config, "n_attn_blocks", {2, 4, 3}),
             inside = stage_sizes(config, "base_attn_unit_dims", {128, 192, 256});
  config.require(counts.size() == 3 && inside.size() == 3,
                 "n_attn_blocks or base_attn_unit_dims are not three");
  Module& all = add_mobile_entry(config, tree, of, 2);
  std::vector<Module> transformers;
  for (std::size_t i = 0; i < 3; ++i) {
    config.require(counts[i].value() <= 1000 && inside[i].value() <= 1'000'000'000,
                   "n_attn_blocks or base_attn_unit_dims hold what is no such number");
    const Perceiving part = {of.widths[i + 2], of.widths[i + 3],
                             multiplied(static_cast<double>(inside[i].value())), counts[i].value()};
    const std::string path = "encoder.layer." + std::to_string(i + 2) + ".";
    add_halving(all, path + "downsampling_layer.", of, part.in, part.out);
    add_normed(all, path + "conv_kxk.convolution", path + "conv_kxk.normalization", {1, part.out, of.reach});
    add_convolution(all, path + "conv_1x1.convolution", {part.out, part.inside});
    add_resnet_convolution(all, path + "conv_projection.", part.inside, part.out, 1);
    Tower(all, Part::vision).norm(path + "layernorm", part.inside, true);
    transformers.push_back(separable_layers(config, of.prefix + path + "transformer.layer.{layer}", part));
    tree.layers += part.layers;
  }
  for (Module& transformer : transformers) tree.modules.push_back(std::move(transformer));
  tree.hidden_size = of.widths[5].value();
  if (cuts_out(config))
    add_segments(config, tree, of.widths[5], 512);
  else if (!of.prefix.empty())
    add_image_classifier(config, tree, {"classifier"}, of.widths[5]);
}

constexpr std::string_view kMobileVitArchitectures[] = {"MobileViTModel", "MobileViTForImageClassification",
                                                        "MobileViTForSemanticSegmentation"},
                           kMobileVitTypes[] = {"mobilevit"},
                           kMobileVit2Architectures[] = {"MobileViTV2Model",
                                                         "MobileViTV2ForImageClassification",
                                                         "MobileViTV2ForSemanticSegmentation"},
                           kMobileVit2Types[] = {"mobilevitv2"};

}  // namespace

const Family kMobileVit = {"mobilevit",     "MobileViT", kMobileVitArchitectures,
                           kMobileVitTypes, {},          describe_mobilevit};
const Family kMobileVit2 = {
    "mobilevitv2", "MobileViT v2", kMobileVit2Architectures, kMobileVit2Types, {}, describe_mobilevit2};

}  // namespace assay::families
