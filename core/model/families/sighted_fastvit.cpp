// FastVLM: timm's FastViT "mci3" (FastViTHD) in front of a Qwen2: a stem of convolutions, three stages that mix patches by
// depthwise convolutions, two that attend, each stage half as wide and high as the one before. All convolutions are stored as
// inference has them, with their branches joined. Source: transformers 5.24 (fast_vlm), which asks timm for the tower.
#include <fmt/format.h>

#include <array>

#include "core/model/families/norm_statistics.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

struct FastVitStage {
  std::uint64_t width, depth;
  bool attends;
};
constexpr std::array<FastVitStage, 5> kStages = {
    {{96, 2, false}, {192, 12, false}, {384, 24, false}, {768, 4, true}, {1536, 2, true}}};
constexpr std::uint64_t kWidthOut = 3072;

// A square convolution with a bias; of `in` channels a group.
void add_convolution(Tower& tower, const std::string& name, std::uint64_t out, std::uint64_t in,
                     std::uint64_t side) {
  tower.tensor(name + ".weight", {out, in, side, side}).tensor(name + ".bias", {out});
}

// A depthwise convolution and a batch norm in front of an MLP of convolutions over single patches.
void add_fastvit_mlp(Module& blocks, std::uint64_t width) {
  Tower block(blocks, Part::vision);
  block.tensor("mlp.conv.conv.weight", {width, 1, 7, 7}).norm("mlp.conv.bn", width, true);
  add_convolution(block, "mlp.fc1", 4 * width, width, 1);
  add_convolution(block, "mlp.fc2", width, 4 * width, 1);
  add_norm_statistics(blocks, "mlp.conv.bn", width);
}

Module fastvit_blocks(const FastVitStage& stage) {
  const std::uint64_t width = stage.width;
  Module blocks = layers("blocks.{layer}", stage.attends ? "blocks that attend" : "blocks",
                         all_layers(Quantity(stage.depth)));
  Tower block(blocks, Part::vision);
  if (stage.attends) {
    block.norm("norm", width, true)
        .matrix("token_mixer.qkv", width, 3 * width, false)
        .matrix("token_mixer.proj", width, width, true)
        .tensor("layer_scale_1.gamma", {width, 1, 1})
        .tensor("layer_scale_2.gamma", {width, 1, 1});
  } else {
    add_convolution(block, "token_mixer.reparam_conv", width, 1, 3);
    block.tensor("layer_scale.gamma", {width, 1, 1});
  }
  add_fastvit_mlp(blocks, width);
  return blocks;
}

Module fastvit_stage(std::size_t at) {
  const FastVitStage& stage = kStages[at];
  Module module{fmt::format("stages.{}", at), "stage", {}, {}, {}};
  Tower start(module, Part::vision);
  if (at > 0) {
    add_convolution(start, "downsample.proj.0.reparam_conv", stage.width, 1, 7);  // each channel makes two
    add_convolution(start, "downsample.proj.1.reparam_conv", stage.width, stage.width, 1);
  }
  if (stage.attends) add_convolution(start, "pos_emb.reparam_conv", stage.width, 1, 7);
  module.children = {fastvit_blocks(stage)};
  return module;
}

Module fastvit(std::string path) {
  Module tower{std::move(path), "vision tower (FastViT)", {}, {}, {}};
  Tower whole(tower, Part::vision);
  add_convolution(whole, "stem.0.reparam_conv", 96, 3, 3);
  add_convolution(whole, "stem.1.reparam_conv", 96, 1, 3);
  add_convolution(whole, "stem.2.reparam_conv", 96, 96, 1);
  add_convolution(whole, "final_conv.reparam_conv", kWidthOut, 1, 3);
  add_convolution(whole, "final_conv.se.fc1", kWidthOut / 16, kWidthOut, 1);  // squeeze and excitation
  add_convolution(whole, "final_conv.se.fc2", kWidthOut, kWidthOut / 16, 1);
  for (std::size_t at = 0; at < kStages.size(); ++at) tower.children.push_back(fastvit_stage(at));
  return tower;
}

}  // namespace

void add_fast_vlm(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  vision->require(
      vision->text("architecture", "fastvit_mci3") == "fastvit_mci3" &&
          vision->number("hidden_size", kWidthOut) == kWidthOut,
      "architecture is not fastvit_mci3, or hidden_size not 3072: FastVLM has been described with");
  add_tower(tree, fastvit("model.vision_tower.timm_model"));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("model.multi_modal_projector", kWidthOut, out, out,
                               document.flag("multimodal_projector_bias", true)));
}

}  // namespace assay::families
