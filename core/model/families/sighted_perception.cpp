// Perception LM: a Llama behind Meta's Perception Encoder, as timm names it and PerceptionLMConfig tells it: `architecture`, and what
// of it is otherwise. Source: transformers 5.24 (perception_lm, timm_wrapper), timm's eva.py.
#include <algorithm>
#include <array>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

struct PerceptionSizes {
  std::string_view name;
  std::uint64_t width, depth, wide, patch, image;
  bool class_token;
};
constexpr std::array<PerceptionSizes, 5> kPerceptions = {
    {{"vit_pe_core_base_patch16_224", 768, 12, 3072, 16, 224, true},
     {"vit_pe_core_large_patch14_336", 1024, 24, 4096, 14, 336, true},
     {"vit_pe_core_gigantic_patch14_448", 1536, 50, 8960, 14, 448, false},
     {"vit_pe_lang_large_patch14_448", 1024, 23, 4096, 14, 448, true},
     {"vit_pe_lang_gigantic_patch14_448", 1536, 47, 8960, 14, 448, false}}};

std::uint64_t side_in_pixels(ConfigReader& args, std::uint64_t otherwise) {
  if (!args.is_list("img_size")) return args.size("img_size", otherwise).value();
  const auto sides = args.numbers("img_size");
  args.require(sides && sides->size() == 2 && (*sides)[0] == (*sides)[1], "img_size is no square");
  return (*sides)[0];
}

Module perception_encoder(ConfigReader& args, const PerceptionSizes& of) {
  args.require(
      !args.flag("use_post_transformer_norm", true) && args.text("global_pool", "map").empty() &&
          args.optional_real("init_values").has_value(),
      "use_post_transformer_norm, global_pool or init_values: the encoder is described without a norm "
      "and a pool behind it, with blocks that are scaled");
  const Quantity width = args.size("embed_dim", of.width), patch = of.patch;
  args.require(width.value() == of.width, "embed_dim is another than the architecture's");
  const std::uint64_t side = side_in_pixels(args, of.image) / of.patch;
  args.require(side > 0, "img_size is less than a patch");
  const Quantity places = Quantity(side) * Quantity(side) + Quantity(of.class_token ? 1 : 0);
  Module tower{"model.vision_tower.timm_model", "vision tower (Perception Encoder)", {}, {}, {}};
  Tower start(tower, Part::vision);
  if (of.class_token) start.tensor("cls_token", {1, 1, width});
  start.tensor("pos_embed", {1, places, width})
      .tensor("patch_embed.proj.weight", {width, 3, patch, patch})
      .norm("norm_pre", width, true);
  EncoderBlock block{width, of.wide};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  tower.children = {
      encoder_blocks("blocks.{layer}", read_layers(args, "depth", of.depth), block, Part::vision)};
  Tower(tower.children.back(), Part::vision).tensor("gamma_1", {width}).tensor("gamma_2", {width});
  return tower;
}

}  // namespace

void add_perception(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  const std::string name = vision->text("architecture", "");
  const auto sizes = std::find_if(kPerceptions.begin(), kPerceptions.end(),
                                  [&](const PerceptionSizes& known) { return known.name == name; });
  vision->require(sizes != kPerceptions.end(), "architecture: \"" + name + "\" is not described");
  TowerConfig args(*vision, tree, "model_args");
  vision->require(static_cast<bool>(args), "model_args is missing");
  add_tower(tree, perception_encoder(*args, *sizes));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("model.multi_modal_projector", sizes->width, out, out, true));
}

}  // namespace assay::families
