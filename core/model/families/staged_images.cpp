// Encoders of images in stages of growing width, by themselves: ConvNeXt and its second version, which convolve, and SegFormer,
// whose attention meets keys of a coarser image. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/norm_statistics.h"

namespace assay::families {
namespace {

using namespace blocks;

// A convolution within each channel, then an MLP: scaled (the first version), or normed by what other places have.
Module convnext_blocks(ConfigReader& config, const std::string& path, const Quantity& width,
                       const Quantity& depth, bool second) {
  constexpr std::uint64_t kReach = 7;
  const Quantity wide = Quantity(4) * width;
  Module blocks = layers(path + ".layers.{layer}", "blocks", all_layers(depth));
  Tower block(blocks, Part::vision);
  block.tensor("dwconv.weight", {width, 1, kReach, kReach})
      .tensor("dwconv.bias", {width})
      .norm("layernorm", width, true)
      .matrix("pwconv1", width, wide, true)
      .matrix("pwconv2", wide, width, true);
  if (second)
    block.tensor("grn.weight", {1, 1, 1, wide}).tensor("grn.bias", {1, 1, 1, wide});
  else if (config.real("layer_scale_init_value", 1e-6) > 0)
    block.tensor("layer_scale_parameter", {width});
  return blocks;
}

void describe_convnext_of(ConfigReader& config, ModuleTree& tree, const ImageKin& kin, bool second) {
  const auto widths = stage_sizes(config, "hidden_sizes", {96, 192, 384, 768}),
             depths = stage_sizes(config, "depths", {3, 3, 9, 3});
  config.require(widths.size() == depths.size(), "hidden_sizes and depths are of different lengths");
  config.require(config.size("num_stages", 4).value() == widths.size(),
                 "num_stages is not that of hidden_sizes");
  const bool alone = is_alone(config, kin);
  const std::string prefix = alone ? "" : kin.prefix;
  const Quantity patch = config.size("patch_size", 4);
  Tower(add_image_module(tree, prefix + "embeddings", "what enters"), Part::vision)
      .tensor("patch_embeddings.weight", {widths[0], config.size("num_channels", 3), patch, patch})
      .tensor("patch_embeddings.bias", {widths[0]})
      .norm("layernorm", widths[0], true);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string path = prefix + "encoder.stages." + std::to_string(i);
    config.require(depths[i].value() <= 1000, "depths holds what is no number of layers");
    if (i > 0)
      Tower(add_image_module(tree, path + ".downsampling_layer", "halves sides"), Part::vision)
          .norm("0", widths[i - 1], true)
          .tensor("1.weight", {widths[i], widths[i - 1], 2, 2})
          .tensor("1.bias", {widths[i]});
    tree.modules.push_back(convnext_blocks(config, path, widths[i], depths[i], second));
    tree.layers += depths[i].value();
  }
  tree.hidden_size = widths.back().value();
  Tower(add_image_module(tree, trimmed(prefix), "last norm"), Part::vision)
      .norm("layernorm", widths.back(), true);
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else
    add_image_classifier(config, tree, {"classifier"}, widths.back());
}
void describe_convnext(ConfigReader& config, ModuleTree& tree) {
  describe_convnext_of(config, tree, {"convnext.", "ConvNext"}, false);
}
void describe_convnext2(ConfigReader& config, ModuleTree& tree) {
  describe_convnext_of(config, tree, {"convnextv2.", "ConvNextV2"}, true);
}

// DINOv3's: the same layers under other names, whose first step is four pixels wide whatever the config says.
void describe_dinov3_convnext(ConfigReader& config, ModuleTree& tree) {
  constexpr std::uint64_t kReach = 7, kPatch = 4;
  const auto widths = stage_sizes(config, "hidden_sizes", {96, 192, 384, 768}),
             depths = stage_sizes(config, "depths", {3, 3, 9, 3});
  config.require(widths.size() == depths.size(), "hidden_sizes and depths are of different lengths");
  for (std::size_t i = 0; i < widths.size(); ++i) {
    config.require(depths[i].value() <= 1000, "depths holds what is no number of layers");
    const std::string path = "stages." + std::to_string(i);
    const Quantity& width = widths[i];
    const Quantity in = i == 0 ? config.size("num_channels", 3) : widths[i - 1];
    const std::string convolution = i == 0 ? "0" : "1", norm = i == 0 ? "1" : "0";
    const Quantity reach = i == 0 ? kPatch : 2;
    Tower(add_image_module(tree, path + ".downsample_layers", "shrinks sides"), Part::vision)
        .tensor(convolution + ".weight", {width, in, reach, reach})
        .tensor(convolution + ".bias", {width})
        .norm(norm, i == 0 ? width : in, true);
    Module blocks = layers(path + ".layers.{layer}", "blocks", all_layers(depths[i]));
    Tower block(blocks, Part::vision);
    block.tensor("depthwise_conv.weight", {width, 1, kReach, kReach})
        .tensor("depthwise_conv.bias", {width})
        .norm("layer_norm", width, true)
        .matrix("pointwise_conv1", width, Quantity(4) * width, true)
        .matrix("pointwise_conv2", Quantity(4) * width, width, true)
        .tensor("gamma", {width});
    tree.modules.push_back(std::move(blocks));
    tree.layers += depths[i].value();
  }
  tree.hidden_size = widths.back().value();
  Tower(add_image_module(tree, "", "last norm"), Part::vision).norm("layer_norm", widths.back(), true);
}

struct SegStage {
  Quantity in, width, depth, patch, coarser, wide;
};

Module seg_blocks(const SegStage& stage, const std::string& path) {
  constexpr std::uint64_t kReach = 3;
  Module blocks = layers(path + ".{layer}", "blocks", all_layers(stage.depth));
  Tower block(blocks, Part::vision);
  block.norm("layer_norm_1", stage.width, true).norm("layer_norm_2", stage.width, true);
  for (const char* name : {"self.query", "self.key", "self.value", "output.dense"})
    block.matrix(std::string("attention.") + name, stage.width, stage.width, true);
  if (stage.coarser.value() > 1)
    block.tensor("attention.self.sr.weight", {stage.width, stage.width, stage.coarser, stage.coarser})
        .tensor("attention.self.sr.bias", {stage.width})
        .norm("attention.self.layer_norm", stage.width, true);
  block.matrix("mlp.dense1", stage.width, stage.wide, true)
      .tensor("mlp.dwconv.dwconv.weight", {stage.wide, 1, kReach, kReach})
      .tensor("mlp.dwconv.dwconv.bias", {stage.wide})
      .matrix("mlp.dense2", stage.wide, stage.width, true);
  return blocks;
}

// What joins all stages and tells each place's class.
void add_seg_head(ConfigReader& config, ModuleTree& tree, const std::vector<Quantity>& widths) {
  const Quantity width = config.size("decoder_hidden_size", 256);
  Module& head = add_image_module(tree, "decode_head", "what tells each place's class");
  Tower into(head, Part::vision);
  for (std::size_t i = 0; i < widths.size(); ++i)
    into.matrix("linear_c." + std::to_string(i) + ".proj", widths[i], width, true);
  into.tensor("linear_fuse.weight", {width, Quantity("num_encoder_blocks", widths.size()) * width, 1, 1})
      .norm("batch_norm", width, true)
      .tensor("classifier.weight", {label_count(config), width, 1, 1})
      .tensor("classifier.bias", {label_count(config)});
  add_norm_statistics(head, "batch_norm", width.value());
}

void describe_segformer(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"segformer.", "Segformer"};
  const auto widths = stage_sizes(config, "hidden_sizes", {32, 64, 160, 256}),
             depths = stage_sizes(config, "depths", {2, 2, 2, 2}),
             patches = stage_sizes(config, "patch_sizes", {7, 3, 3, 3}),
             coarser = stage_sizes(config, "sr_ratios", {8, 4, 2, 1}),
             ratios = stage_sizes(config, "mlp_ratios", {4, 4, 4, 4});
  const std::size_t stages = config.size("num_encoder_blocks", 4).value();
  for (const auto* list : {&widths, &depths, &patches, &coarser, &ratios})
    config.require(list->size() == stages, "lists of stages are not as long as num_encoder_blocks");
  const bool alone = is_alone(config, kin);
  const std::string prefix = (alone ? "" : kin.prefix) + "encoder.";
  for (std::size_t i = 0; i < stages; ++i) {
    config.require(depths[i].value() <= 1000, "depths holds what is no number of layers");
    const Quantity in = i > 0 ? widths[i - 1] : config.size("num_channels", 3);
    const SegStage stage{in, widths[i], depths[i], patches[i], coarser[i], ratios[i] * widths[i]};
    const std::string number = std::to_string(i);
    Tower(add_image_module(tree, prefix + "patch_embeddings." + number, "halves sides"), Part::vision)
        .tensor("proj.weight", {stage.width, stage.in, stage.patch, stage.patch})
        .tensor("proj.bias", {stage.width})
        .norm("layer_norm", stage.width, true);
    tree.modules.push_back(seg_blocks(stage, prefix + "block." + number));
    Tower(add_image_module(tree, prefix + "layer_norm", "last norm of a stage"), Part::vision)
        .norm(number, stage.width, true);
    tree.layers += stage.depth.value();
  }
  tree.hidden_size = widths.back().value();
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else if (config.config().architecture().ends_with("ForImageClassification"))
    add_image_classifier(config, tree, {"classifier"}, widths.back());
  else
    add_seg_head(config, tree, widths);
}

constexpr std::string_view kConvnextArchitectures[] = {"ConvNextModel", "ConvNextForImageClassification"},
                           kConvnextTypes[] = {"convnext"},
                           kConvnext2Architectures[] = {"ConvNextV2Model",
                                                        "ConvNextV2ForImageClassification"},
                           kConvnext2Types[] = {"convnextv2"},
                           kSegformerArchitectures[] = {"SegformerModel", "SegformerForImageClassification",
                                                        "SegformerForSemanticSegmentation"},
                           kSegformerTypes[] = {"segformer"},
                           kDinov3ConvnextArchitectures[] = {"DINOv3ConvNextModel"},
                           kDinov3ConvnextTypes[] = {"dinov3_convnext"};

}  // namespace

const Family kConvnext = {"convnext",     "ConvNeXt", kConvnextArchitectures,
                          kConvnextTypes, {},         describe_convnext};
const Family kConvnext2 = {"convnextv2", "ConvNeXt V2",     kConvnext2Architectures, kConvnext2Types,
                           {},           describe_convnext2};
const Family kSegformer = {"segformer",     "SegFormer", kSegformerArchitectures,
                           kSegformerTypes, {},          describe_segformer};
const Family kDinov3Convnext = {
    "dinov3_convnext",       "DINOv3 (ConvNeXt)", kDinov3ConvnextArchitectures, kDinov3ConvnextTypes, {},
    describe_dinov3_convnext};

}  // namespace assay::families
