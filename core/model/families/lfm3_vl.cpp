// LFM3-VL: LFM3 behind an encoder of its own kind: short convolutions over the image, attention in some blocks.
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

Module lfm3_tower(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 1024), wide = vision.size("intermediate_size", 2560);
  const Quantity patch = vision.size("patch_size", 16), heads = vision.size("num_attention_heads", 16);
  const Quantity dim = vision.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity kv_width = vision.size("num_key_value_heads", 8) * dim;
  const Quantity side = vision.size("conv_kernel_size", 3);
  const Quantity count = read_layers(vision, "num_hidden_layers", 14);
  const auto types = vision.texts("layer_types");
  vision.require(!types || types->size() >= count.value(), "layer_types lists fewer layers than there are");
  const auto convolves = [&](std::uint64_t i) { return types ? (*types)[i] == "conv" : i < 2 || i % 2 == 1; };
  Module tower{"model.vision_tower", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patchifier",
              vision.size("in_channels", 3) * vision.size("temporal_patch_size", 2) * patch * patch, hidden,
              false)
      .norm("embedding_norm", hidden, false);
  const auto groups = group_layers(
      "layers.{layer}", count,
      [&](std::uint64_t i) { return convolves(i) ? "blocks that convolve" : "blocks that attend"; },
      [&](Module& layer, std::uint64_t i) {
        Tower block(layer, Part::vision);
        if (convolves(i)) {
          block.matrix("conv.in_proj", hidden, Quantity(3) * hidden, false)
              .tensor("conv.spatial_conv.weight", {hidden, 1, side, side})
              .matrix("conv.out_proj", hidden, hidden, false);
        } else {
          block.matrix("self_attn.q_proj", hidden, hidden, false)
              .matrix("self_attn.k_proj", hidden, kv_width, false)
              .matrix("self_attn.v_proj", hidden, kv_width, false)
              .matrix("self_attn.out_proj", hidden, hidden, false)
              .norm("self_attn.q_layernorm", dim, false)
              .norm("self_attn.k_layernorm", dim, false);
        }
        block.norm("operator_norm", hidden, false)
            .norm("ffn_norm", hidden, false)
            .matrix("feed_forward.w1", hidden, wide, false)
            .matrix("feed_forward.w3", hidden, wide, false)
            .matrix("feed_forward.w2", wide, hidden, false);
      });
  tower.children.assign(groups.begin(), groups.end());
  return tower;
}

}  // namespace

void add_lfm3_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, lfm3_tower(*vision));
  const Quantity hidden = vision->size("hidden_size", 1024), merge = vision->size("spatial_merge_size", 2);
  Module projector = two_matrices("model.multi_modal_projector", merge * merge * hidden,
                                  document.size("projector_hidden_size", 4096), text_width(tree),
                                  document.flag("projector_bias", true));
  Tower(projector, Part::projector).norm("layer_norm", hidden, true);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
