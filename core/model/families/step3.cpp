// What Step 3 (StepFun, 321B) sees by: a ViT and two strided convolutions. Names: the published weights, as vLLM 0.33 reads
// them. Its language model is in mixtures_hub.cpp.
#include "core/model/families/step3.h"

#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

namespace {
using namespace blocks;
}  // namespace

void add_step3_eyes(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1792), patch = vision->size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision->size("image_size", 728).value() / patch.value());
  const Quantity out = vision->size("output_hidden_size", 4096), last = Quantity(2) * out;
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {1, hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side + Quantity(1), hidden});
  EncoderBlock block{hidden, vision->size("intermediate_size", 3072)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  block.qkv = "self_attn.qkv_proj", block.o = "self_attn.out_proj";
  tower.children = {encoder_blocks("transformer.layers.{layer}",
                                   read_layers(*vision, "num_hidden_layers", 63), block, Part::vision)};
  add_tower(tree, std::move(tower));
  Module projector{"", "strided convolutions, projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("vit_downsampler.weight", {out, hidden, 2, 2})
      .tensor("vit_downsampler.bias", {out})
      .tensor("vit_downsampler2.weight", {last, out, 3, 3})
      .tensor("vit_downsampler2.bias", {last})
      .matrix("vit_large_projector", last, text_width(tree), document.flag("projector_bias", true));
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
