// Logics-Thinking: a Qwen3 behind a ConvNeXt XXL, as timm names it, and a SigLIP 2 side by side. Source: modeling_logics.py beside
// the weights (github.com/alibaba/Logics-Thinking), which knows the first's sizes by its name; it is saved with `weight` for what
// timm calls gamma.
#include <array>

#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// timm's convnext_xxlarge, with a head over 1024 classes that a CLIP was trained with.
constexpr std::array<std::uint64_t, 4> kDepths = {3, 4, 30, 3}, kWidths = {384, 768, 1536, 3072};
constexpr std::uint64_t kClasses = 1024;

void add_convolution(Tower& into, const std::string& name, const std::vector<Quantity>& shape) {
  into.tensor(name + ".weight", shape).tensor(name + ".bias", {shape.front()});
}

Module convnext_stage(std::size_t stage) {
  const Quantity width = kWidths[stage], wide = Quantity(4) * width;
  Module module{"stages." + std::to_string(stage), "stage", {}, {}, {}};
  if (stage > 0) {
    const Quantity before = kWidths[stage - 1];
    Tower down(module, Part::vision);
    down.norm("downsample.0", before, true);
    add_convolution(down, "downsample.1", {width, before, 2, 2});
  }
  Module blocks = layers("blocks.{layer}", "blocks", all_layers(Quantity(kDepths[stage])));
  Tower block(blocks, Part::vision);
  add_convolution(block, "conv_dw", {width, 1, 7, 7});
  block.norm("norm", width, true)
      .matrix("mlp.fc1", width, wide, true)
      .matrix("mlp.fc2", wide, width, true)
      .tensor("weight", {width});
  module.children = {std::move(blocks)};
  return module;
}

Module convnext_tower(std::string path) {
  Module tower{std::move(path), "vision tower (ConvNeXt)", {}, {}, {}};
  Tower ends(tower, Part::vision);
  add_convolution(ends, "stem.0", {kWidths.front(), 3, 4, 4});
  ends.norm("stem.1", kWidths.front(), true)
      .norm("head.norm", kWidths.back(), true)
      .matrix("head.fc", kWidths.back(), kClasses, true);
  for (std::size_t stage = 0; stage < kDepths.size(); ++stage)
    tower.children.push_back(convnext_stage(stage));
  return tower;
}

}  // namespace

void add_logics(ConfigReader& document, ModuleTree& tree) {
  TowerConfig siglip(document, tree, "siglip_config");
  document.require(static_cast<bool>(siglip), "siglip_config is missing");
  const std::string pair = document.text("mm_vision_tower", "");
  document.require(pair == "convnext-1024,siglip2-384", "mm_vision_tower: \"" + pair + "\" is not described");
  const std::string projector_type = document.text("mm_projector_type", "linear");
  document.require(projector_type == "mlp2x_gelu",
                   "mm_projector_type: \"" + projector_type + "\" is not described");
  const std::string towers = "model.vision_tower.vision_towers.";
  add_tower(tree, convnext_tower(towers + "0.vision_tower"));
  Module eye = siglip_tower(*siglip, towers + "1.vision_tower.vision_model", kSiglipOfKeye);
  // Its last block is taken away: what the one before it makes is what the language model sees.
  Repeat& blocks = eye.children.front().repeat;
  siglip->require(blocks.indices.size() > 1, "num_hidden_layers leaves no block");
  blocks.indices.pop_back();
  blocks.count = blocks.indices.size();
  add_tower(tree, std::move(eye));
  const Quantity out = text_width(tree);
  Module projector{"model.mm_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", document.size("mm_hidden_size"), out, true)
      .matrix("2", out, out, true);
  add_tower(tree, std::move(projector));
  add_bare(tree, "model.image_newline", {out});
}

}  // namespace assay::families
