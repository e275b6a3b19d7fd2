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

struct Sam {
  Quantity hidden, patch, channels, side, out, wide, dim, depth;
  bool bias, relative, absolute;
  std::uint64_t window;
  std::vector<std::uint64_t> global;
};
Sam read_sam(ConfigReader& vision, const Quantity& mlp_default, std::uint64_t image = 1024) {
  const Quantity hidden = vision.size("hidden_size|width", 768), patch = vision.size("patch_size", 16);
  const auto given = vision.numbers("global_attn_indexes");
  return {hidden,
          patch,
          vision.size("num_channels", 3),
          {"image_size / patch_size", vision.size("image_size", image).value() / patch.value()},
          vision.size("output_channels", 256),
          vision.size("mlp_dim", mlp_default),
          vision.quotient(hidden, vision.size("num_attention_heads|heads", 12),
                          "hidden_size / num_attention_heads"),
          read_layers(vision, "num_hidden_layers|layers", 12),
          vision.flag("qkv_bias", true),
          vision.flag("use_rel_pos", true),
          vision.flag("use_abs_pos", true),
          vision.number("window_size", 14),
          given.value_or(std::vector<std::uint64_t>{2, 5, 8, 11})};
}

// Attention within windows but in a few layers; scores get a vector for each distance, along both sides.
Module sam_tower(const Sam& sam, std::string path, const SamNames& names = {}) {
  const auto sees_all = [&](std::uint64_t i) {
    return sam.window == 0 || std::find(sam.global.begin(), sam.global.end(), i) != sam.global.end();
  };
  const Quantity& hidden = sam.hidden;
  Module tower{std::move(path), "vision tower (SAM)", {}, {}, {}};
  Tower start(tower, Part::vision);
  if (sam.absolute) start.tensor("pos_embed", {1, sam.side, sam.side, hidden});
  start.tensor(std::string(names.patches) + ".weight", {hidden, sam.channels, sam.patch, sam.patch})
      .tensor(std::string(names.patches) + ".bias", {hidden});
  if (names.counted_neck)
    add_counted_neck(start, "neck", hidden, sam.out);
  else
    add_neck(tower, Part::vision, "neck", hidden, sam.out);
  const auto groups = group_layers(
      names.blocks, sam.depth,
      [&](std::uint64_t i) { return sees_all(i) ? "blocks" : "blocks with windows"; },
      [&](Module& layer, std::uint64_t i) {
        Tower block(layer, Part::vision);
        block.norm(names.norm1, hidden, true)
            .norm(names.norm2, hidden, true)
            .matrix("attn.qkv", hidden, Quantity(3) * hidden, sam.bias)
            .matrix("attn.proj", hidden, hidden, true)
            .matrix("mlp.lin1", hidden, sam.wide, true)
            .matrix("mlp.lin2", sam.wide, hidden, true);
        if (!sam.relative) return;
        const std::uint64_t reach = sees_all(i) ? sam.side.value() : sam.window;
        for (const char* name : {"attn.rel_pos_h", "attn.rel_pos_w"})
          block.tensor(name, {Quantity("distances", 2 * reach - 1), sam.dim});
      });
  tower.children.assign(groups.begin(), groups.end());
  return tower;
}

constexpr SamNames kSamOwnNames{"patch_embed.proj", "blocks.{layer}", "norm1", "norm2", true};

}  // namespace

void add_counted_neck(Tower into, const std::string& path, const Quantity& in, const Quantity& out) {
  into.tensor(path + ".0.weight", {out, in, 1, 1})
      .norm(path + ".1", out, true)
      .tensor(path + ".2.weight", {out, out, 3, 3})
      .norm(path + ".3", out, true);
}

Module deep_sam_tower(ConfigReader& sam, std::string path) {
  return sam_tower(read_sam(sam, Quantity(4) * sam.size("hidden_size|width", 768)), std::move(path),
                   kSamOwnNames);
}

Module sam_of_sizes(const OwnSam& of, std::string path) {
  const std::uint64_t quarter = of.depth / 4;
  const Sam sam{of.hidden,
                16,
                3,
                of.side,
                256,
                Quantity(4) * Quantity(of.hidden),
                of.hidden / of.heads,
                of.depth,
                true,
                true,
                true,
                14,
                {quarter - 1, 2 * quarter - 1, 3 * quarter - 1, 4 * quarter - 1}};
  return sam_tower(sam, std::move(path), kSamOwnNames);
}

Module sam_encoder(ConfigReader& vision, std::string path) {
  const double ratio = vision.real("mlp_ratio", 4, 0.001, 1000);
  const auto wide =
      static_cast<std::uint64_t>(ratio * static_cast<double>(vision.size("hidden_size", 768).value()));
  vision.require(wide > 0, "mlp_ratio leaves the MLP without a width");
  vision.require(vision.size("patch_size", 16).value() <= vision.size("image_size", 1024).value(),
                 "patch_size exceeds image_size");
  return sam_tower(read_sam(vision, {"mlp_ratio × hidden_size", wide}), std::move(path));
}

Module sam_encoder_of(ConfigReader& vision, std::string path, std::uint64_t wide, std::uint64_t image) {
  vision.require(vision.size("patch_size", 16).value() <= vision.size("image_size", image).value(),
                 "patch_size exceeds image_size");
  return sam_tower(read_sam(vision, wide, image), std::move(path));
}

void add_got_ocr2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, sam_tower(read_sam(*vision, 3072), "vision_tower"));
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
  add_tower(tree, sam_tower(read_sam(*high, wide), "model.high_res_vision_model.vision_encoder"));
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
