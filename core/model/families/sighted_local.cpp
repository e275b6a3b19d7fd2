// Models that see, which llama.cpp and MLX run and the large engines have no class for: Youtu-VL and Mage-VL. Names and shapes as
// MLX-VLM 0.7.10 loads them (models/youtu_vl, mage_vl), and llama.cpp's converter (conversion/youtuvl.py).
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Each patch is normed, then so many squared are joined.
Module patch_merger(std::string path, const Quantity& width, const Quantity& side, const Quantity& out,
                    bool norm_bias) {
  const Quantity joined = side * side * width;
  Module merger{std::move(path), "projector", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", width, norm_bias)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, out, true);
  return merger;
}

// A SigLIP 2 whose patches rotate: its table of positions, of which files may hold one, is not read.
void add_youtu_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Module tower = siglip_tower(
      *vision, "siglip2.vision_model",
      {.patches = SiglipPatches::flat, .hidden = 1152, .patch = 16, .intermediate = 4304, .layers = 27});
  const TensorSpec table = tower.tensors.back();
  tower.tensors.pop_back();
  add_buffer(tower, table.name, {table.shape.front(), table.shape.back()});
  add_tower(tree, std::move(tower));
  add_tower(tree, patch_merger("merger", vision->size("hidden_size", 1152),
                               vision->size("spatial_merge_size", 2), text_width(tree), false));
}

void add_mage_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1024), patch = vision->size("patch_size", 16);
  const bool bias = vision->text("layer_norm_type", "layer_norm") != "rms_norm";
  vision->require(!vision->flag("use_head", false) && !vision->flag("use_patch_position_encoding", false),
                  "use_head or use_patch_position_encoding is true: Mage-VL has been described without");
  Module tower{"model.visual", "vision tower (Mage-ViT)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .norm("layernorm_pre", hidden, bias);
  EncoderBlock block{hidden, vision->size("intermediate_size", 4096)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2", block.norm_bias = bias;
  block.qkv = "self_attn.qkv", block.o = "self_attn.proj";
  tower.children = {encoder_blocks("encoder.layers.{layer}", read_layers(*vision, "num_hidden_layers", 24),
                                   block, Part::vision)};
  add_tower(tree, std::move(tower));
  add_tower(tree, patch_merger("model.visual.merger", hidden, vision->size("spatial_merge_size", 2),
                               text_width(tree), true));
}

std::string_view text_is_youtu(const ModelConfig&) {
  return "youtu";
}

constexpr std::string_view kYoutuVl[] = {"YoutuVLForConditionalGeneration"}, kYoutuVlTypes[] = {"youtu_vl"};
constexpr std::string_view kMageVl[] = {"MageVLForConditionalGeneration"}, kMageVlTypes[] = {"mage_vl"};

constexpr auto kByDocument = ModelConfig::Tied::document_first;
constexpr Sighted kLocal[] = {
    {"Youtu-VL", kYoutuVl, kYoutuVlTypes, SightedNames::as_alone, kByDocument, add_youtu_vl, "", "",
     text_is_youtu},
    {"Mage-VL", kMageVl, kMageVlTypes, SightedNames::model_first, kByDocument, add_mage_vl},
};

}  // namespace

std::span<const Sighted> models_run_locally() {
  return kLocal;
}

}  // namespace assay::families
