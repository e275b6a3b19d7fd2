// More encoders of images by themselves, told by what differs from ViT: BEiT and data2vec, whose blocks are scaled; YOLOS, which
// finds things; MAE, with what paints; VideoMAE, which sees films. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

// BEiT: scores by distance in each layer, or in one table for all; queries and values have biases, keys none.
void add_distances(ConfigReader& config, Tower into, const std::string& path) {
  const Sides image = pixel_sides(config, "image_size", 224), patch = pixel_sides(config, "patch_size", 16);
  const auto steps = [&](const Quantity& whole, const Quantity& part) {
    config.require(part.value() <= whole.value(), "patch_size exceeds image_size");
    return Quantity("2 image_size / patch_size - 1", 2 * (whole.value() / part.value()) - 1);
  };
  constexpr std::uint64_t kOfClassToken = 3;
  into.tensor(path + "relative_position_bias.relative_position_bias_table",
              {steps(image.height, patch.height) * steps(image.width, patch.width) + Quantity(kOfClassToken),
               config.size("num_attention_heads", 12)});
}

void add_beit_entry(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                    const Quantity& hidden) {
  const Sides patch = pixel_sides(config, "patch_size", 16);
  Tower enters(add_image_module(tree, prefix + "embeddings", "what enters"), Part::vision);
  enters.tensor("cls_token", {1, 1, hidden});
  if (config.flag("use_mask_token", false)) enters.tensor("mask_token", {1, 1, hidden});
  if (config.flag("use_absolute_position_embeddings", false))
    enters.tensor("position_embeddings", {1, seen_patches(config, 16) + Quantity(1), hidden});
  enters
      .tensor("patch_embeddings.projection.weight",
              {hidden, config.size("num_channels", 3), patch.height, patch.width})
      .tensor("patch_embeddings.projection.bias", {hidden});
}

void describe_beit_of(ConfigReader& config, ModuleTree& tree, const ImageKin& kin, bool pools_alone) {
  const Quantity hidden = read_image_width(config, tree, 768);
  const bool alone = is_alone(config, kin);
  const std::string prefix = alone ? "" : kin.prefix;
  add_beit_entry(config, tree, prefix, hidden);
  Module blocks = vit_blocks(config, tree, prefix + "encoder.layer.{layer}",
                             vit_block(hidden, config.size("intermediate_size", 3072)), Part::vision);
  std::erase_if(blocks.tensors,
                [](const TensorSpec& spec) { return spec.name == "attention.attention.key.bias"; });
  Tower block(blocks, Part::vision);
  if (config.real("layer_scale_init_value", 0.1) > 0)
    block.tensor("lambda_1", {hidden}).tensor("lambda_2", {hidden});
  if (config.flag("use_relative_position_bias", false)) add_distances(config, block, "attention.attention.");
  tree.modules.push_back(std::move(blocks));
  Module& rest = add_image_module(tree, trimmed(prefix), "last norm");
  if (config.flag("use_shared_relative_position_bias", false))
    add_distances(config, Tower(rest, Part::vision), "encoder.");
  const bool pooled = config.flag("use_mean_pooling", true);
  if (!pooled) Tower(rest, Part::vision).norm("layernorm", hidden, true);
  if (pooled && (pools_alone || !alone)) Tower(rest, Part::vision).norm("pooler.layernorm", hidden, true);
  if (rest.tensors.empty()) tree.modules.pop_back();
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else
    add_image_classifier(config, tree, {"classifier"}, hidden);
}
void describe_beit(ConfigReader& config, ModuleTree& tree) {
  describe_beit_of(config, tree, {"beit.", "Beit"}, true);
}
void describe_data2vec_vision(ConfigReader& config, ModuleTree& tree) {
  describe_beit_of(config, tree, {"data2vec_vision.", "Data2VecVision"}, false);
}

// Three matrices of one width, but the last: what YOLOS tells classes and boxes by.
void add_three(Tower into, const std::string& path, const Quantity& hidden, const Quantity& out) {
  into.matrix(path + ".layers.0", hidden, hidden, true)
      .matrix(path + ".layers.1", hidden, hidden, true)
      .matrix(path + ".layers.2", hidden, out, true);
}

void add_yolos_entry(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                     const Quantity& hidden) {
  const auto sides = config.numbers("image_size").value_or(std::vector<std::uint64_t>{512, 864});
  const Sides patch = pixel_sides(config, "patch_size", 16);
  config.require(sides.size() == 2 && patch.height.value() <= sides[0] && patch.width.value() <= sides[1],
                 "image_size is no height and width of which patch_size is a part");
  const Quantity found = config.size("num_detection_tokens", 100);
  const Quantity places = Quantity("image_size / patch_size", sides[0] / patch.height.value()) *
                              Quantity("image_size / patch_size", sides[1] / patch.width.value()) +
                          found + Quantity(1);
  Tower enters(add_image_module(tree, trimmed(prefix), "what enters"), Part::vision);
  enters.tensor("embeddings.cls_token", {1, 1, hidden})
      .tensor("embeddings.detection_tokens", {1, found, hidden})
      .tensor("embeddings.position_embeddings", {1, places, hidden})
      .tensor("embeddings.patch_embeddings.projection.weight",
              {hidden, config.size("num_channels", 3), patch.height, patch.width})
      .tensor("embeddings.patch_embeddings.projection.bias", {hidden});
  const std::uint64_t depth = read_layers(config, "num_hidden_layers", 12).value();
  if (!config.flag("use_mid_position_embeddings", true) || depth <= 1) return;
  // Counted over the whole area by the class, whatever of its sides is no patch.
  const Quantity area("image area / patch area", (Quantity(sides[0]) * Quantity(sides[1])).value() /
                                                     (patch.height * patch.width).value());
  enters.tensor("encoder.mid_position_embeddings",
                {{"num_hidden_layers - 1", depth - 1}, 1, area + found + Quantity(1), hidden});
}

void describe_yolos(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"vit.", "Yolos"};
  const Quantity hidden = read_image_width(config, tree, 768);
  const bool alone = is_alone(config, kin);
  const std::string prefix = alone ? "" : kin.prefix;
  add_yolos_entry(config, tree, prefix, hidden);
  tree.modules.push_back(vit_blocks(config, tree, prefix + "encoder.layer.{layer}",
                                    vit_block(hidden, config.size("intermediate_size", 3072)), Part::vision));
  Module& rest = add_image_module(tree, trimmed(prefix), "last norm");
  Tower(rest, Part::vision).norm("layernorm", hidden, true);
  if (alone) {
    Tower(rest, Part::vision).matrix("pooler.dense", hidden, hidden, true);
    tree.aliases = {{"", kin.prefix}};
    return;
  }
  Module& heads = add_image_module(tree, "", "what tells classes and boxes");
  add_three(Tower(heads, Part::vision), "class_labels_classifier", hidden,
            label_count(config) + Quantity(1));  // one more is that nothing was found
  add_three(Tower(heads, Part::vision), "bbox_predictor", hidden, 4);
}

// What paints the patches that were left out: a narrower ViT.
void add_painter(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  const Quantity width = config.size("decoder_hidden_size", 512),
                 wide = config.size("decoder_intermediate_size", 2048);
  const Sides patch = pixel_sides(config, "patch_size", 16);
  Module& painter = add_image_module(tree, "decoder", "what paints");
  Tower(painter, Part::vision)
      .matrix("decoder_embed", hidden, width, true)
      .tensor("mask_token", {1, 1, width})
      .tensor("decoder_pos_embed", {1, seen_patches(config, 16) + Quantity(1), width})
      .norm("decoder_norm", width, true)
      .matrix("decoder_pred", width, patch.height * patch.height * config.size("num_channels", 3), true);
  tree.modules.push_back(vit_layers(config, "decoder.decoder_layers.{layer}",
                                    read_layers(config, "decoder_num_hidden_layers", 8),
                                    vit_block(width, wide), Part::vision));
}

void describe_mae(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"vit.", "ViTMAE"};
  const Quantity hidden = add_plain_vit(config, tree, add_prefix(config, tree, kin), {"cls_token"});
  if (!is_alone(config, kin)) add_painter(config, tree, hidden);
  // As transformers 5.24 saves the painter's layers.
  tree.aliases.push_back({"decoder.decoder_layers.", "decoder.decoder_encoder.layer."});
}

// VideoMAE: patches last for several frames, places are sines, and biases of queries and values are stored beside the matrices.
void describe_videomae(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"videomae.", "VideoMAE"};
  const Quantity hidden = read_image_width(config, tree, 768);
  const bool alone = is_alone(config, kin), pooled = config.flag("use_mean_pooling", true);
  const std::string prefix = alone ? "" : kin.prefix;
  const Sides patch = pixel_sides(config, "patch_size", 16);
  Tower(add_image_module(tree, prefix + "embeddings", "what enters"), Part::vision)
      .tensor(
          "patch_embeddings.projection.weight",
          {hidden, config.size("num_channels", 3), config.size("tubelet_size", 2), patch.height, patch.width})
      .tensor("patch_embeddings.projection.bias", {hidden});
  Module blocks = vit_blocks(config, tree, prefix + "encoder.layer.{layer}",
                             vit_block(hidden, config.size("intermediate_size", 3072)), Part::vision);
  leave_out_qkv_biases(blocks);
  if (config.flag("qkv_bias|qv_bias", true))
    Tower(blocks, Part::vision)
        .tensor("attention.attention.q_bias", {hidden})
        .tensor("attention.attention.v_bias", {hidden});
  tree.modules.push_back(std::move(blocks));
  if (!pooled)
    Tower(add_image_module(tree, trimmed(prefix), "last norm"), Part::vision).norm("layernorm", hidden, true);
  if (alone) {
    tree.aliases = {{"", kin.prefix}};
    return;
  }
  if (pooled) Tower(add_image_module(tree, "", "last norm"), Part::vision).norm("fc_norm", hidden, true);
  add_image_classifier(config, tree, {"classifier"}, hidden);
}

constexpr std::string_view kBeitArchitectures[] = {"BeitModel", "BeitForImageClassification"},
                           kBeitTypes[] = {"beit"},
                           kData2vecArchitectures[] = {"Data2VecVisionModel",
                                                       "Data2VecVisionForImageClassification"},
                           kData2vecTypes[] = {"data2vec-vision"},
                           kYolosArchitectures[] = {"YolosModel", "YolosForObjectDetection"},
                           kYolosTypes[] = {"yolos"},
                           kMaeArchitectures[] = {"ViTMAEModel", "ViTMAEForPreTraining"},
                           kMaeTypes[] = {"vit_mae"},
                           kVideomaeArchitectures[] = {"VideoMAEModel", "VideoMAEForVideoClassification"},
                           kVideomaeTypes[] = {"videomae"};

}  // namespace

const Family kBeit = {"beit", "BEiT", kBeitArchitectures, kBeitTypes, {}, describe_beit};
const Family kData2vecVision = {
    "data2vec_vision",       "data2vec (images)", kData2vecArchitectures, kData2vecTypes, {},
    describe_data2vec_vision};
const Family kYolos = {"yolos", "YOLOS", kYolosArchitectures, kYolosTypes, {}, describe_yolos};
const Family kMae = {"vit_mae", "ViT MAE", kMaeArchitectures, kMaeTypes, {}, describe_mae};
const Family kVideomae = {"videomae",     "VideoMAE", kVideomaeArchitectures,
                          kVideomaeTypes, {},         describe_videomae};

}  // namespace assay::families
