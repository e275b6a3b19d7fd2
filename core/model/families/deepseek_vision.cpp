// What DeepSeek-V4-Flash-Vision-Exp and V4.1 see with: a ViT without a table of places, gates and ups in one matrix, whose
// patches are joined. Names and shapes as vLLM loads them (vllm/models/deepseek_v4/common/vision.py, vl_model.py).
#include "core/model/families/deepseek_v4.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_v4_image_bias(Module& mixture, const Quantity& experts) {
  mixture.children[0].tensors.push_back(
      parameter("gate.bias_vl", {experts}, Role::router_correction, Part::router));
  mixture.children[0].tensors.back().bias = true;
}

void add_v4_vision(ModuleTree& tree, const V4Vision& of) {
  const Quantity out = text_width(tree);
  Module tower{"vision", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patch_embed.proj", Quantity(3) * of.patch * of.patch, of.width, true)
      .norm("norm", of.width, false);
  Module blocks = layers("blocks.{layer}", "blocks", all_layers(of.depth));
  Tower(blocks, Part::vision)
      .norm("norm1", of.width, false)
      .norm("norm2", of.width, false)
      .matrix("attn.wqkv", of.width, Quantity(3) * of.width, true)
      .matrix("attn.wo", of.width, of.width, true)
      .matrix("mlp.w1", of.width, Quantity(2) * of.wide, false)
      .matrix("mlp.w2", of.wide, of.width, false);
  tower.children = {std::move(blocks)};
  add_tower(tree, std::move(tower));
  Module aligner{"aligner", "projector", {}, {}, {}};
  Tower(aligner, Part::projector)
      .matrix("w1", of.joined * of.joined * of.width, out, true)
      .matrix("w2", out, out, true);
  add_tower(tree, std::move(aligner));
  for (const std::string& mark : of.marks) add_bare(tree, mark, {out});
}

}  // namespace assay::families
