// More kin of ViT, told by what differs: I-JEPA and ViT MSN, which learnt without labels; ViViT and TimeSformer, which see films;
// ViLT, which reads words beside patches; ViTPose, which finds joints. Source: transformers 5.23; layers are named as releases
// have them.
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/norm_statistics.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

EncoderBlock plain_block(ConfigReader& config, const Quantity& hidden) {
  return vit_block(hidden, config.size("intermediate_size", 3072));
}

void add_classes(ConfigReader& config, ModuleTree& tree, const ImageKin& kin, const Quantity& hidden) {
  if (!is_alone(config, kin)) add_image_classifier(config, tree, {"classifier"}, hidden);
}

// I-JEPA has no token beside the patches, ViT MSN one that is classified by.
void describe_learnt_without_labels(ConfigReader& config, ModuleTree& tree, const ImageKin& kin,
                                    std::vector<std::string> tokens) {
  const Quantity hidden = add_plain_vit(config, tree, add_prefix(config, tree, kin), std::move(tokens));
  add_classes(config, tree, kin, hidden);
}
void describe_ijepa(ConfigReader& config, ModuleTree& tree) {
  describe_learnt_without_labels(config, tree, {"ijepa.", "IJepa"}, {});
}
void describe_vit_msn(ConfigReader& config, ModuleTree& tree) {
  describe_learnt_without_labels(config, tree, {"vit.", "ViTMSN"}, {"cls_token"});
}

// ViViT: patches last for several frames (tubelets), and each has a place.
void describe_vivit(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"vivit.", "Vivit"};
  const std::string prefix = add_prefix(config, tree, kin);
  const Quantity hidden = read_image_width(config, tree, 768);
  const auto sides = stage_sizes(config, "tubelet_size", {2, 16, 16});
  const Sides image = pixel_sides(config, "image_size", 224);
  config.require(sides.size() == 3, "tubelet_size is no number of frames, height and width");
  const auto fits = [&](const char* key, const Quantity& whole, const Quantity& part) {
    config.require(part.value() <= whole.value(), std::string("tubelet_size exceeds ") + key);
    return Quantity(std::string(key) + " / tubelet_size", whole.value() / part.value());
  };
  const Quantity places = fits("num_frames", config.size("num_frames", 32), sides[0]) *
                          fits("image_size", image.height, sides[1]) *
                          fits("image_size", image.width, sides[2]);
  Tower(add_image_module(tree, prefix + "embeddings", "what enters"), kin.part)
      .tensor("cls_token", {1, 1, hidden})
      .tensor("position_embeddings", {1, places + Quantity(1), hidden})
      .tensor("patch_embeddings.projection.weight",
              {hidden, config.size("num_channels", 3), sides[0], sides[1], sides[2]})
      .tensor("patch_embeddings.projection.bias", {hidden});
  add_vit_layers(config, tree, prefix, hidden, kin.part);
  add_classes(config, tree, kin, hidden);
  if (is_alone(config, kin)) add_vit_pooler(config, tree, hidden);
}

// TimeSformer: each layer looks over time, then over a picture.
void describe_timesformer(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"timesformer.", "Timesformer"};
  const std::string prefix = add_prefix(config, tree, kin);
  const Quantity hidden = read_image_width(config, tree, 768);
  const std::string kind = config.text("attention_type", "divided_space_time");
  const bool by_turns = kind == "divided_space_time";
  config.require(by_turns || kind == "space_only" || kind == "joint_space_time",
                 "attention_type is " + kind + ": no such attention is known");
  add_seen(tree, prefix,
           {hidden,
            seen_patches(config, 16),
            config.size("num_channels", 3),
            pixel_sides(config, "patch_size", 16),
            {"cls_token"}},
           kin.part);
  if (kind != "space_only")
    Tower(tree.modules.back(), kin.part).tensor("time_embeddings", {1, config.size("num_frames", 8), hidden});
  EncoderBlock block = plain_block(config, hidden);
  block.qkv = "attention.attention.qkv";
  Module layer = vit_blocks(config, tree, prefix + "encoder.layer.{layer}", block, kin.part);
  if (by_turns)
    Tower(layer, kin.part)
        .matrix("temporal_attention.attention.qkv", hidden, Quantity(3) * hidden,
                config.flag("qkv_bias", true))
        .matrix("temporal_attention.output.dense", hidden, hidden, true)
        .norm("temporal_layernorm", hidden, true)
        .matrix("temporal_dense", hidden, hidden, true);
  tree.modules.push_back(std::move(layer));
  Tower(add_image_module(tree, trimmed(prefix), "last norm"), kin.part).norm("layernorm", hidden, true);
  add_classes(config, tree, kin, hidden);
}

// ViLT: words and patches in one sequence.
void add_vilt_entry(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                    const Quantity& hidden) {
  add_seen(tree, prefix,
           {hidden,
            seen_patches(config, 32, 384),
            config.size("num_channels", 3),
            pixel_sides(config, "patch_size", 32),
            {"cls_token"}},
           Part::vision);
  Tower(tree.modules.back(), Part::vision)
      .tensor("token_type_embeddings.weight", {config.size("modality_type_vocab_size", 2), hidden});
  Module& words = add_image_module(tree, prefix + "embeddings.text_embeddings", "words");
  Tower(words, Part::embedding)
      .tensor("word_embeddings.weight", {config.size("vocab_size", 30522), hidden})
      .tensor("position_embeddings.weight", {config.size("max_position_embeddings", 40), hidden})
      .tensor("token_type_embeddings.weight", {config.size("type_vocab_size", 2), hidden})
      .norm("LayerNorm", hidden, true);
  add_buffer(words, "position_ids", {1, config.size("max_position_embeddings", 40).value()});
}

// Two matrices and a norm between.
void add_vilt_classes(ConfigReader& config, ModuleTree& tree, const Quantity& in, const Quantity& between) {
  Tower(add_image_module(tree, "classifier", "classifier"), Part::vision)
      .matrix("0", in, between, true)
      .norm("1", between, true)
      .matrix("3", between, label_count(config), true);
}

void describe_vilt(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"vilt.", "Vilt"};
  const std::string prefix = add_prefix(config, tree, kin);
  const Quantity hidden = read_image_width(config, tree, 768);
  const std::string& architecture = config.config().architecture();
  add_vilt_entry(config, tree, prefix, hidden);
  tree.modules.push_back(
      vit_blocks(config, tree, prefix + "encoder.layer.{layer}", plain_block(config, hidden), kin.part));
  Tower last(add_image_module(tree, trimmed(prefix), "last norm"), kin.part);
  last.norm("layernorm", hidden, true);
  if (!architecture.ends_with("ForTokenClassification")) last.matrix("pooler.dense", hidden, hidden, true);
  if (is_alone(config, kin)) return;
  if (architecture.ends_with("ForImageAndTextRetrieval")) {
    Tower(add_image_module(tree, "", "whether words fit"), kin.part).matrix("rank_output", hidden, 1, true);
  } else if (architecture.ends_with("ForTokenClassification")) {
    add_image_classifier(config, tree, {"classifier"}, hidden);
  } else if (architecture.ends_with("ForQuestionAnswering")) {
    add_vilt_classes(config, tree, hidden, Quantity(2) * hidden);
  } else {
    const Quantity all = config.size("num_images") * hidden;
    add_vilt_classes(config, tree, all, all);
  }
}

// ViTPose: where joints are, by one convolution, or by two that enlarge and one.
void add_joints(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  Module& head = add_image_module(tree, "head", "what finds joints");
  Tower into(head, Part::vision);
  const Quantity joints = label_count(config);
  if (config.flag("use_simple_decoder", true)) {
    into.tensor("conv.weight", {joints, hidden, 3, 3}).tensor("conv.bias", {joints});
    return;
  }
  constexpr std::uint64_t kWidth = 256, kReach = 4;  // by the class
  for (const char* number : {"1", "2"}) {
    const std::string norm = std::string("batchnorm") + number;
    into.tensor(std::string("deconv") + number + ".weight",
                {*number == '1' ? hidden : Quantity(kWidth), kWidth, kReach, kReach})
        .norm(norm, kWidth, true);
    add_norm_statistics(head, norm, kWidth);
  }
  into.tensor("conv.weight", {joints, kWidth, 1, 1}).tensor("conv.bias", {joints});
}

// One MLP, or a first matrix for all and a second whose last part each kind of data has of its own.
Module joint_layers(ConfigReader& config, const Quantity& hidden, const Quantity& depth) {
  const Quantity wide = config.size("mlp_ratio", 4) * hidden;
  EncoderBlock block = vit_block(hidden, wide);
  block.up = "mlp.fc1", block.down = "mlp.fc2";
  const Quantity experts = config.size("num_experts", 1);
  Module layer = vit_layers(config, "backbone.encoder.layer.{layer}", depth, block, Part::vision);
  if (experts.value() == 1) return layer;
  const Quantity part = config.size("part_features", 256);
  config.require(part.value() < hidden.value() && experts.value() <= 1000,
                 "part_features is not less than hidden_size, or num_experts is absurd");
  std::erase_if(layer.tensors, [](const TensorSpec& spec) { return spec.name.starts_with("mlp.fc2"); });
  Tower into(layer, Part::vision);
  into.matrix("mlp.fc2", wide, Quantity("hidden_size - part_features", hidden.value() - part.value()), true);
  for (std::uint64_t i = 0; i < experts.value(); ++i)
    into.matrix("mlp.experts." + std::to_string(i), wide, part, true);
  return layer;
}

void describe_vitpose(ConfigReader& config, ModuleTree& tree) {
  TowerConfig backbone(config, tree, "backbone_config");
  config.require(backbone && backbone->text("model_type", "vitpose_backbone") == "vitpose_backbone",
                 "backbone_config is not that of a ViTPose");
  const Quantity hidden = read_image_width(*backbone, tree, 768),
                 depth = read_layers(*backbone, "num_hidden_layers", 12);
  tree.layers = depth.value();
  const auto image = stage_sizes(*backbone, "image_size", {256, 192}),
             patch = stage_sizes(*backbone, "patch_size", {16, 16});
  config.require(image.size() == 2 && patch.size() == 2 && patch[0].value() <= image[0].value() &&
                     patch[1].value() <= image[1].value(),
                 "image_size and patch_size are no two sides, of which the second are parts");
  const Quantity places = Quantity("image_size / patch_size", image[0].value() / patch[0].value()) *
                          Quantity("image_size / patch_size", image[1].value() / patch[1].value());
  Tower(add_image_module(tree, "backbone.embeddings", "what enters"), Part::vision)
      .tensor("position_embeddings", {1, places + Quantity(1), hidden})
      .tensor("patch_embeddings.projection.weight",
              {hidden, backbone->size("num_channels", 3), patch[0], patch[1]})
      .tensor("patch_embeddings.projection.bias", {hidden});
  tree.modules.push_back(joint_layers(*backbone, hidden, depth));
  Tower(add_image_module(tree, "backbone", "last norm"), Part::vision).norm("layernorm", hidden, true);
  add_joints(config, tree, hidden);
}

constexpr std::string_view kIJepaArchitectures[] = {"IJepaModel", "IJepaForImageClassification"},
                           kIJepaTypes[] = {"ijepa"},
                           kVitMsnArchitectures[] = {"ViTMSNModel", "ViTMSNForImageClassification"},
                           kVitMsnTypes[] = {"vit_msn"},
                           kVivitArchitectures[] = {"VivitModel", "VivitForVideoClassification"},
                           kVivitTypes[] = {"vivit"},
                           kTimesformerArchitectures[] = {"TimesformerModel",
                                                          "TimesformerForVideoClassification"},
                           kTimesformerTypes[] = {"timesformer"},
                           kViltArchitectures[] = {"ViltModel", "ViltForQuestionAnswering",
                                                   "ViltForImageAndTextRetrieval",
                                                   "ViltForImagesAndTextClassification",
                                                   "ViltForTokenClassification"},
                           kViltTypes[] = {"vilt"}, kVitposeArchitectures[] = {"VitPoseForPoseEstimation"},
                           kVitposeTypes[] = {"vitpose"};

}  // namespace

const Family kIJepa = {"ijepa", "I-JEPA", kIJepaArchitectures, kIJepaTypes, {}, describe_ijepa};
const Family kVitMsn = {"vit_msn", "ViT MSN", kVitMsnArchitectures, kVitMsnTypes, {}, describe_vit_msn};
const Family kVivit = {"vivit", "ViViT", kVivitArchitectures, kVivitTypes, {}, describe_vivit};
const Family kTimesformer = {
    "timesformer", "TimeSformer", kTimesformerArchitectures, kTimesformerTypes, {}, describe_timesformer};
const Family kViLt = {"vilt", "ViLT", kViltArchitectures, kViltTypes, {}, describe_vilt};
const Family kVitpose = {"vitpose", "ViTPose", kVitposeArchitectures, kVitposeTypes, {}, describe_vitpose};

}  // namespace assay::families
