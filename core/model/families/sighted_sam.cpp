// Models that see through SAM's encoder: GOT-OCR2, and DeepSeek-VL's larger one, which has SigLIP beside it.
#include <algorithm>

#include "core/model/families/deepseek_ocr.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Two convolutions, each normed, that narrow a block's channels.
void add_neck(Module& into, Part part, const std::string& path, const Quantity& in, const Quantity& out) {
  Tower(into, part)
      .tensor(path + ".conv1.weight", {out, in, 1, 1})
      .norm(path + ".layer_norm1", out, true)
      .tensor(path + ".conv2.weight", {out, out, 3, 3})
      .norm(path + ".layer_norm2", out, true);
}

// What transformers calls the encoder's parts, and what SAM's own code does.
struct SamNames {
  const char *patches = "patch_embed.projection", *blocks = "layers.{layer}";
  const char *norm1 = "layer_norm1", *norm2 = "layer_norm2";
  bool counted_neck = false;  // neck.0 to neck.3
};

void add_counted_neck(Tower into, const Quantity& in, const Quantity& out) {
  into.tensor("neck.0.weight", {out, in, 1, 1})
      .norm("neck.1", out, true)
      .tensor("neck.2.weight", {out, out, 3, 3})
      .norm("neck.3", out, true);
}

// Attention within windows but in a few layers; scores get a vector for each distance, along both sides.
Module sam_tower(ConfigReader& vision, std::string path, const Quantity& mlp_default,
                 const SamNames& names = {}) {
  const Quantity hidden = vision.size("hidden_size|width", 768), patch = vision.size("patch_size", 16);
  const Quantity side("image_size / patch_size", vision.size("image_size", 1024).value() / patch.value());
  const Quantity out = vision.size("output_channels", 256), wide = vision.size("mlp_dim", mlp_default);
  const Quantity dim = vision.quotient(hidden, vision.size("num_attention_heads|heads", 12),
                                       "hidden_size / num_attention_heads");
  const bool bias = vision.flag("qkv_bias", true), relative = vision.flag("use_rel_pos", true);
  const std::uint64_t window = vision.number("window_size", 14);
  const auto given = vision.numbers("global_attn_indexes");
  const auto global = given.value_or(std::vector<std::uint64_t>{2, 5, 8, 11});
  const auto sees_all = [&](std::uint64_t i) {
    return window == 0 || std::find(global.begin(), global.end(), i) != global.end();
  };
  Module tower{std::move(path), "vision tower (SAM)", {}, {}, {}};
  Tower start(tower, Part::vision);
  if (vision.flag("use_abs_pos", true)) start.tensor("pos_embed", {1, side, side, hidden});
  start.tensor(std::string(names.patches) + ".weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor(std::string(names.patches) + ".bias", {hidden});
  if (names.counted_neck)
    add_counted_neck(start, hidden, out);
  else
    add_neck(tower, Part::vision, "neck", hidden, out);
  const auto groups = group_layers(
      names.blocks, read_layers(vision, "num_hidden_layers|layers", 12),
      [&](std::uint64_t i) { return sees_all(i) ? "blocks" : "blocks with windows"; },
      [&](Module& layer, std::uint64_t i) {
        Tower block(layer, Part::vision);
        block.norm(names.norm1, hidden, true)
            .norm(names.norm2, hidden, true)
            .matrix("attn.qkv", hidden, Quantity(3) * hidden, bias)
            .matrix("attn.proj", hidden, hidden, true)
            .matrix("mlp.lin1", hidden, wide, true)
            .matrix("mlp.lin2", wide, hidden, true);
        if (!relative) return;
        const std::uint64_t reach = sees_all(i) ? side.value() : window;
        for (const char* name : {"attn.rel_pos_h", "attn.rel_pos_w"})
          block.tensor(name, {Quantity("distances", 2 * reach - 1), dim});
      });
  tower.children.assign(groups.begin(), groups.end());
  return tower;
}

}  // namespace

Module deep_sam_tower(ConfigReader& sam, std::string path) {
  const SamNames names{"patch_embed.proj", "blocks.{layer}", "norm1", "norm2", true};
  return sam_tower(sam, std::move(path), Quantity(4) * sam.size("hidden_size|width", 768), names);
}

void add_got_ocr2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, sam_tower(*vision, "vision_tower", 3072));
  const Quantity channels = vision->size("output_channels", 256), out = text_width(tree);
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("conv_upsampler1.weight", {Quantity(2) * channels, channels, 3, 3})
      .tensor("conv_upsampler2.weight", {out, Quantity(2) * channels, 3, 3})
      .matrix("multimodal_projector", out, out, true);
  add_tower(tree, std::move(projector));
}

void add_deepseek_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "model.vision_model", "siglip_vision_model")) return;
  const Quantity out = text_width(tree);
  Module aligner{"model.aligner", "projector", {}, {}, {}};
  Tower(aligner, Part::projector)
      .matrix("linear1", vision->size("hidden_size", 768), out, true)
      .matrix("linear2", out, out, true);
  add_tower(tree, std::move(aligner));
}

// Each encoder gives half of what the last matrix is given; of SAM's, two layers' outputs are weighed by alpha.
void add_deepseek_vl_hybrid(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config"), high(document, tree, "high_res_vision_config");
  if (!vision || !high || !add_encoder(*vision, tree, "model.vision_model", "siglip_vision_model")) return;
  const Quantity hidden = high->size("hidden_size", 768), channels = high->size("output_channels", 256);
  const Quantity wide(
      "hidden_size × mlp_ratio",
      static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * high->real("mlp_ratio", 4, 0, 1024)));
  add_tower(tree, sam_tower(*high, "model.high_res_vision_model.vision_encoder", wide));
  const Quantity out = text_width(tree);
  const Quantity half = document.quotient(out, 2, "hidden_size / 2");
  Module rest{"model", "projector", {}, {}, {}};
  add_neck(rest, Part::projector, "high_res_vision_neck", hidden, channels);
  Tower(rest, Part::projector)
      .tensor("high_res_vision_alpha", {1})
      .tensor("high_res_vision_proj.conv1.weight", {Quantity(2) * channels, channels, 3, 3})
      .tensor("high_res_vision_proj.conv2.weight", {Quantity(4) * channels, Quantity(2) * channels, 3, 3})
      .matrix("aligner.vision_proj", vision->size("hidden_size", 768), half, true)
      .matrix("aligner.high_res_vision_proj", Quantity(4) * channels, half, true)
      .matrix("aligner.proj", out, out, true);
  add_tower(tree, std::move(rest));
}

}  // namespace assay::families
