// Mask2Former, which cuts images into things and stuff: a Swin, layers that look at a few places of its pictures, and a decoder
// of queries that tell a class and a mask each. Source: transformers 5.23.
#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/detectors.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kPictures = 3;  // that layers look at, by the class

struct Masks {
  std::string prefix;
  Quantity features, masks, hidden;
};

// Pictures of one width, and layers over the smaller ones; the largest is joined with what these give.
void add_pixel_decoder(ConfigReader& config, ModuleTree& tree, const Masks& of,
                       const std::vector<Quantity>& taken) {
  const std::string path = of.prefix + "pixel_level_module.decoder";
  const Quantity heads = config.size("num_attention_heads", 8);
  config.require_divides(heads, of.features);
  config.require(taken.size() == kPictures + 1, "the backbone gives no four pictures");
  const auto strides = config.numbers("feature_strides").value_or(std::vector<std::uint64_t>{4, 8, 16, 32});
  config.require(
      strides == std::vector<std::uint64_t>{4, 8, 16, 32} && config.size("common_stride", 4).value() == 4,
      "feature_strides and common_stride are not those of four pictures: others are not described");
  constexpr std::uint64_t kPlaces = 4;  // by the class
  Module layer = layers(path + ".encoder.layers.{layer}", "layers over pictures",
                        all_layers(read_layers(config, "encoder_layers", 6)));
  add_deformable_layer(layer, "",
                       {of.features, config.size("encoder_feedforward_dim", 1024),
                        heads * Quantity(kPictures) * Quantity(kPlaces)});
  tree.modules.push_back(std::move(layer));
  Module& own = add_image_module(tree, path, "pictures");
  Tower tower(own, Part::vision);
  for (std::uint64_t i = 0; i < kPictures; ++i) {  // from the smallest on
    const std::string name = "input_projections." + std::to_string(i);
    add_convolution(own, name + ".0", {taken[kPictures - i], of.features, 1, true});
    tower.norm(name + ".1", of.features, true);
  }
  tower.tensor("level_embed", {kPictures, of.features});
  add_convolution(own, "adapter_1.0", {taken.front(), of.features});
  add_convolution(own, "layer_1.0", {of.features, of.features, 3});
  tower.norm("adapter_1.1", of.features, true).norm("layer_1.1", of.features, true);
  add_convolution(own, "mask_projection", {of.features, of.masks, 1, true});
}

void add_query_decoder(ConfigReader& config, ModuleTree& tree, const Masks& of) {
  const std::string path = of.prefix + "transformer_module";
  const Quantity& hidden = of.hidden;
  const Quantity depth = config.size("decoder_layers", 10), queries = config.size("num_queries", 100);
  config.require(depth.value() >= 2 && depth.value() <= 1000,
                 "decoder_layers is no number of layers above one");
  config.require_divides(config.size("num_attention_heads", 8), hidden);
  const Quantity wide = config.size("dim_feedforward", 2048);
  Module layer = detector_layers(path + ".decoder.layers.{layer}", "decoder layers",
                                 Quantity("decoder_layers - 1", depth.value() - 1), hidden, wide);
  const Quantity joint = Quantity(3) * hidden;  // queries, keys and values in one matrix
  Tower(layer, Part::vision)
      .tensor("cross_attn.in_proj_weight", {joint, hidden})
      .tensor("cross_attn.in_proj_bias", {joint})
      .matrix("cross_attn.out_proj", hidden, hidden, true)
      .norm("cross_attn_layer_norm", hidden, true);
  tree.modules.push_back(std::move(layer));
  Module& own = add_image_module(tree, path, "queries and masks");
  Tower tower(own, Part::vision);
  tower.norm("decoder.layernorm", hidden, true)
      .tensor("level_embed.weight", {kPictures, hidden})
      .tensor("queries_embedder.weight", {queries, hidden})
      .tensor("queries_features.weight", {queries, hidden});
  const std::vector<Quantity> widths{hidden, hidden, hidden, of.masks};
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    tower.matrix("decoder.mask_predictor.mask_embedder." + std::to_string(i) + ".0", widths[i], widths[i + 1],
                 true);
  if (of.features.value() == hidden.value() && !config.flag("enforce_input_projection", false)) return;
  for (std::uint64_t i = 0; i < kPictures; ++i)
    add_convolution(own, "input_projections." + std::to_string(i), {of.features, hidden, 1, true});
}

void describe_mask2former(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture().ends_with("Model");
  const Masks of{alone ? "" : "model.", config.size("feature_size", 256),
                 config.size("mask_feature_size", 256), config.size("hidden_dim", 256)};
  TowerConfig backbone(config, tree, "backbone_config");
  config.require(backbone && backbone->text("model_type", "") == "swin",
                 "backbone_config is not that of a Swin: over others it is not described");
  const auto taken = add_swin_backbone(*backbone, tree, of.prefix + "pixel_level_module.encoder.");
  add_pixel_decoder(config, tree, of, taken);
  add_query_decoder(config, tree, of);
  tree.hidden_size = of.hidden.value();
  if (alone) {
    tree.aliases = {{"", "model."}};
    return;
  }
  const Quantity classes = label_count(config) + Quantity(1);  // and nothing
  Module& head = add_image_module(tree, "", "classes");
  Tower(head, Part::vision).matrix("class_predictor", of.hidden, classes, true);
  add_buffer(head, "criterion.empty_weight", {classes.value()});  // of the loss
}

constexpr std::string_view kMask2FormerArchitectures[] = {"Mask2FormerModel",
                                                          "Mask2FormerForUniversalSegmentation"},
                           kMask2FormerTypes[] = {"mask2former"};

}  // namespace

const Family kMask2Former = {
    "mask2former", "Mask2Former", kMask2FormerArchitectures, kMask2FormerTypes, {}, describe_mask2former};

}  // namespace assay::families
