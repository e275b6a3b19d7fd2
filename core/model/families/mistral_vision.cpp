// Pixtral's tower and its projector under Mistral's own names, as Mistral Large 4 is published.
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {

using namespace blocks;

void add_mistral_vision(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1024), patch = vision->size("patch_size", 16);
  Module tower{"vision_encoder", "vision tower (Pixtral)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_conv.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .norm("ln_pre", hidden, false);
  EncoderBlock block{hidden, vision->size("intermediate_size", 4096)};
  block.norm1 = "attention_norm", block.norm2 = "ffn_norm";
  block.q = "attention.wq", block.k = "attention.wk", block.v = "attention.wv", block.o = "attention.wo";
  block.gate = "feed_forward.w1", block.up = "feed_forward.w3", block.down = "feed_forward.w2";
  block.norm_bias = block.attention_bias = block.mlp_bias = false;
  tower.children = {encoder_blocks("transformer.layers.{layer}",
                                   read_layers(*vision, "num_hidden_layers", 24), block, Part::vision)};
  add_tower(tree, std::move(tower));
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, "mistral_large4");
  const Quantity merge = document.size("spatial_merge_size", 2), out = text_width(tree);
  const bool bias = document.flag("multimodal_projector_bias", false);
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("pre_mm_projector_norm", hidden, false)
      .matrix("patch_merger.merging_layer", merge * merge * hidden, hidden, false)
      .matrix("vision_language_adapter.w_in", hidden, out, bias)
      .matrix("vision_language_adapter.w_out", out, out, bias);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
