// RT-DETR and its second version, which find things in images (Docling's layouts among them): a ResNet, an encoder that looks
// within its last picture and joins the pictures of all sides, and a decoder that looks at a few places of each. Source:
// transformers 5.23; layers are named as releases have them.
#include <utility>

#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/detectors.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/resnet.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_joined(Module& module, const std::string& path, const Convolution& of) {
  add_normed(module, path + ".conv", path + ".norm", of);
}

// The ResNet, whose first convolution is three small ones; gives the channels of the pictures that are taken.
std::vector<Quantity> add_detr_backbone(ConfigReader& config, ModuleTree& tree) {
  TowerConfig backbone(config, tree, "backbone_config");
  config.require(backbone && backbone->text("model_type", "") == "rt_detr_resnet",
                 "backbone_config is not that of RT-DETR's ResNet: over others it is not described");
  const Quantity in = backbone->size("embedding_size", 64);
  config.require(in.value() > 1, "embedding_size has no half");
  const Quantity half("embedding_size / 2", in.value() / 2);
  Module& entry = add_image_module(tree, "model.backbone.model.embedder.embedder", "what enters");
  add_resnet_convolution(entry, "0.", backbone->size("num_channels", 3), half, 3);
  add_resnet_convolution(entry, "1.", half, half, 3);
  add_resnet_convolution(entry, "2.", half, in, 3);
  const auto widths =
      add_resnet_stages(*backbone, tree, {"model.backbone.model.encoder.stages", in, /*averages=*/true});
  return taken_stages(*backbone, in, widths);
}

// Two pictures joined: three blocks, each of which has a convolution over neighbours and one of a place.
void add_joining(Module& module, const std::string& path, const Quantity& hidden, const Quantity& inside) {
  constexpr int kBlocks = 3;  // by the class
  const Quantity both = Quantity(2) * hidden;
  for (const char* name : {".conv1", ".conv2"}) add_joined(module, path + name, {both, inside, 1});
  for (int i = 0; i < kBlocks; ++i) {
    const std::string block = path + ".bottlenecks." + std::to_string(i);
    add_joined(module, block + ".conv1", {inside, inside, 3});
    add_joined(module, block + ".conv2", {inside, inside, 1});
  }
  if (inside.value() != hidden.value()) add_joined(module, path + ".conv3", {inside, hidden, 1});
}

void add_detr_encoder(ConfigReader& config, ModuleTree& tree, const std::vector<Quantity>& taken) {
  const Quantity hidden = config.size("encoder_hidden_dim", 256), wide = config.size("encoder_ffn_dim", 1024);
  const double expands = config.real("hidden_expansion", 1, 1e-3, 1000);
  const Quantity inside("encoder_hidden_dim × hidden_expansion",
                        static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * expands));
  config.require(inside.value() > 0, "hidden_expansion leaves no channels");
  Module& entry = add_image_module(tree, "model.encoder_input_proj", "into the encoder");
  for (std::size_t i = 0; i < taken.size(); ++i)
    add_normed(entry, std::to_string(i) + ".0", std::to_string(i) + ".1", {taken[i], hidden, 1});
  const auto looked = config.numbers("encode_proj_layers").value_or(std::vector<std::uint64_t>{2});
  config.require(looked.size() <= 100, "encode_proj_layers names too many pictures");
  const Quantity depth = read_layers(config, "encoder_layers", 1);
  for (std::size_t i = 0; i < looked.size(); ++i)
    tree.modules.push_back(detector_layers("model.encoder.encoder." + std::to_string(i) + ".layers.{layer}",
                                           "encoder layers", depth, hidden, wide));
  const auto sides = stage_sizes(config, "encoder_in_channels", {512, 1024, 2048});
  Module& joins = add_image_module(tree, "model.encoder", "joins pictures");
  for (std::size_t i = 0; i + 1 < sides.size(); ++i) {
    const std::string number = "." + std::to_string(i);
    add_joined(joins, "lateral_convs" + number, {hidden, hidden, 1});
    add_joining(joins, "fpn_blocks" + number, hidden, inside);
    add_joined(joins, "downsample_convs" + number, {hidden, hidden, 3});
    add_joining(joins, "pan_blocks" + number, hidden, inside);
  }
}

// As many pictures as the decoder looks at: further ones are made of the last, at half its sides.
std::uint64_t add_decoder_entry(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  const auto given = stage_sizes(config, "decoder_in_channels", {256, 256, 256});
  const std::uint64_t levels = config.size("num_feature_levels", 3).value();
  config.require(levels <= 32 && given.size() <= levels,
                 "num_feature_levels are fewer than decoder_in_channels, or absurdly many");
  Module& entry = add_image_module(tree, "model.decoder_input_proj", "into the decoder");
  for (std::uint64_t i = 0; i < levels; ++i) {
    const std::string number = std::to_string(i);
    const bool made = i >= given.size();
    const Quantity& in = !made ? given[i] : i == given.size() ? given.back() : hidden;
    add_normed(entry, number + ".0", number + ".1", {in, hidden, made ? 3 : 1});
  }
  return levels;
}

// In the first version places in num_feature_levels pictures, in the second in decoder_n_levels.
void add_detr_decoder(ConfigReader& config, ModuleTree& tree, const Quantity& hidden,
                      const Quantity& levels) {
  const Quantity heads = config.size("decoder_attention_heads", 8),
                 depth = read_layers(config, "decoder_layers", 6), classes = label_count(config),
                 wide = config.size("decoder_ffn_dim", 1024);
  config.require_divides(heads, hidden);
  const Quantity places = heads * levels * config.size("decoder_n_points", 4);
  Module layer = detector_layers("model.decoder.layers.{layer}", "decoder layers", depth, hidden, wide);
  add_few_places(layer, "encoder_attn", hidden, places);
  Tower(layer, Part::vision).norm("encoder_attn_layer_norm", hidden, true);
  tree.modules.push_back(std::move(layer));
  Tower(add_image_module(tree, "model.decoder.query_pos_head", "places of queries"), Part::vision)
      .matrix("layers.0", 4, Quantity(2) * hidden, true)
      .matrix("layers.1", Quantity(2) * hidden, hidden, true);
  Module told = layers("model.decoder", "classes and boxes, of each layer", all_layers(depth));
  Tower guesses(told, Part::vision);
  guesses.matrix("class_embed.{layer}", hidden, classes, true);
  add_box(told, "bbox_embed.{layer}.layers", hidden);
  tree.modules.push_back(std::move(told));
}

void describe_rt_detr_of(ConfigReader& config, ModuleTree& tree, bool second) {
  const auto taken = add_detr_backbone(config, tree);
  add_detr_encoder(config, tree, taken);
  const Quantity hidden = config.size("d_model", 256), classes = label_count(config);
  const Quantity levels("num_feature_levels", add_decoder_entry(config, tree, hidden));
  Module& first = add_image_module(tree, "model", "first guesses");
  Tower into(first, Part::vision);
  if (config.number("num_denoising", 100) > 0)
    into.tensor("denoising_class_embed.weight", {classes + Quantity(1), hidden});
  if (config.flag("learn_initial_query", false))
    into.tensor("weight_embedding.weight", {config.size("num_queries", 300), hidden});
  into.matrix("enc_output.0", hidden, hidden, true)
      .norm("enc_output.1", hidden, true)
      .matrix("enc_score_head", hidden, classes, true);
  add_box(first, "enc_bbox_head.layers", hidden);
  add_detr_decoder(config, tree, hidden, second ? config.size("decoder_n_levels", 3) : levels);
  tree.hidden_size = hidden.value();
  tree.aliases = {{"model.decoder.class_embed.", "class_embed."},
                  {"model.decoder.bbox_embed.", "bbox_embed."}};
}
void describe_rt_detr(ConfigReader& config, ModuleTree& tree) {
  describe_rt_detr_of(config, tree, false);
}
void describe_rt_detr2(ConfigReader& config, ModuleTree& tree) {
  describe_rt_detr_of(config, tree, true);
}

constexpr std::string_view kRtDetrArchitectures[] = {"RTDetrForObjectDetection"},
                           kRtDetrTypes[] = {"rt_detr"},
                           kRtDetr2Architectures[] = {"RTDetrV2ForObjectDetection"},
                           kRtDetr2Types[] = {"rt_detr_v2"};

}  // namespace

const Family kRtDetr = {"rt_detr", "RT-DETR", kRtDetrArchitectures, kRtDetrTypes, {}, describe_rt_detr};
const Family kRtDetr2 = {"rt_detr_v2",  "RT-DETR v2", kRtDetr2Architectures,
                         kRtDetr2Types, {},           describe_rt_detr2};

}  // namespace assay::families
