#include "core/model/families/timm_towers.h"

#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

Module timm_pool(const TimmVit& vit) {
  Module pool{"attn_pool", "pooling head", {}, {}, {}};
  Tower(pool, Part::vision)
      .tensor("latent", {1, 1, vit.width})
      .matrix("q", vit.width, vit.width, true)
      .matrix("kv", vit.width, Quantity(2) * vit.width, true)
      .matrix("proj", vit.width, vit.width, true)
      .norm("norm", vit.width, true)
      .matrix("mlp.fc1", vit.width, vit.wide, true)
      .matrix("mlp.fc2", vit.wide, vit.width, true);
  return pool;
}

}  // namespace

Module timm_vit(const TimmVit& vit, std::string path) {
  Module tower{std::move(path), "vision tower (ViT)", {}, {}, {}};
  Tower start(tower, Part::vision);
  if (vit.class_token) start.tensor("cls_token", {1, 1, vit.width});
  if (vit.registers > 0) start.tensor("reg_token", {1, vit.registers, vit.width});
  start.tensor("patch_embed.proj.weight", {vit.width, 3, vit.patch, vit.patch})
      .tensor("patch_embed.proj.bias", {vit.width})
      .tensor("pos_embed", {1, vit.places, vit.width})
      .norm("norm", vit.width, true);
  EncoderBlock block{vit.width, vit.wide};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  tower.children = {encoder_blocks("blocks.{layer}", vit.depth, block, Part::vision)};
  if (vit.scaled_blocks) {
    Tower(tower.children.back(), Part::vision)
        .tensor("ls1.scale_factor", {vit.width})
        .tensor("ls2.scale_factor", {vit.width});
  }
  if (vit.pooled) tower.children.push_back(timm_pool(vit));
  return tower;
}

}  // namespace assay::families
