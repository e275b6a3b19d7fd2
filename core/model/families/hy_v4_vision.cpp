// HY4's eyes: a ViT over a table of places as large as the largest image, and two convolutions into the text's width.
// Source: transformers 5.24 (hy_v4_vl), with the names that it saves.
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_hy_v4_vision(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1536), patch = vision->size("patch_size", 16);
  const Quantity wide = vision->size("intermediate_size", 6144);
  const Quantity heads = vision->size("num_attention_heads|attention_heads", 16);
  const Quantity kv_heads = vision->size("num_key_value_heads", heads);
  const Quantity dim = vision->quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity side("max_image_size / patch_size",
                      vision->size("max_image_size", 2048).value() / patch.value());
  Module tower{"vit", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side + Quantity(1), hidden});
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(*vision, "num_hidden_layers", 40)));
  Tower(blocks, Part::vision)
      .norm("input_layernorm", hidden, true)
      .norm("post_attention_layernorm", hidden, true)
      .matrix("self_attn.q_proj", hidden, hidden, true)
      .matrix("self_attn.k_proj", hidden, kv_heads * dim, true)
      .matrix("self_attn.v_proj", hidden, kv_heads * dim, true)
      .matrix("self_attn.o_proj", hidden, hidden, true)
      .matrix("mlp.dense_h_to_4h", hidden, wide, true)
      .matrix("mlp.dense_4h_to_h", wide, hidden, true);
  const Quantity out = vision->size("out_hidden_size", 6144), merge = vision->size("spatial_merge_size", 2);
  const Quantity joined = merge * merge * hidden;
  Module merger{"perceive", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("norm", hidden, false)
      .tensor("proj.0.weight", {joined, hidden, merge, merge})
      .tensor("proj.0.bias", {joined})
      .tensor("proj.2.weight", {out, joined, 1, 1})
      .tensor("proj.2.bias", {out})
      .tensor("image_newline", {out});
  tower.children = {std::move(blocks), std::move(merger)};
  add_tower(tree, std::move(tower));
}

}  // namespace assay::families
