// Towers whose patches are joined by twos in each direction: Kimi-VL's MoonViT, OpenCUA's and Sarashina2's of Qwen, Keye-VL's SigLIP,
// dots.ocr's and LLaVA-OneVision-2's own. Names as vLLM 0.33 loads them.
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_kimi_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity joined = moonvit_joined(*vision);
  add_tower(tree, moonvit_tower(*vision, "vision_tower"));
  Module projector = two_matrices("multi_modal_projector", joined, joined, text_width(tree), true);
  Tower(projector, Part::projector).norm("pre_norm", vision->size("hidden_size", 1152), true);
  add_tower(tree, std::move(projector));
}

// The same tower behind InternVL's projector.
void add_locate_anything(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  document.require(document.number("mlp_connector_layers", 2) == 2,
                   "mlp_connector_layers: a projector of two matrices alone is described");
  const Quantity joined = moonvit_joined(*vision), out = text_width(tree);
  add_tower(tree, moonvit_tower(*vision, "vision_model"));
  Module projector{"mlp1", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("0", joined, true)
      .matrix("1", joined, out, true)
      .matrix("3", out, out, true);
  add_tower(tree, std::move(projector));
}

void add_opencua(ConfigReader& document, ModuleTree& tree) {
  add_qwen2_vision(document, tree, "vision_tower", true);
}

// Qwen2-VL's tower and merger, and a norm behind them (SGLang 0.5.23, sarashina2_vision.py).
void add_sarashina(ConfigReader& document, ModuleTree& tree) {
  add_qwen2_vision(document, tree, "visual", false);
  Module last{"", "last norm of what is seen", {}, {}, {}};
  Tower(last, Part::projector).norm("norm", text_width(tree), true);
  add_tower(tree, std::move(last));
}

namespace {

// A SigLIP with its pooling head and a second table of positions, both of which its class has and does not read.
// Its projector norms each patch, or four that were joined.
void add_keye_like(ConfigReader& document, ModuleTree& tree, bool norms_joined) {
  constexpr std::uint64_t kPackedPositions = 32768;
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", kSiglipOfKeye.hidden), joined = Quantity(4) * hidden;
  Module tower = siglip_tower(*vision, "visual.vision_model", kSiglipOfKeye);
  Tower(tower, Part::vision)
      .tensor("embeddings.packing_position_embedding.weight", {kPackedPositions, hidden});
  if (vision->flag("vision_use_head", true)) tower.children.push_back(siglip_head(*vision, kSiglipOfKeye));
  add_tower(tree, std::move(tower));
  Module projector = two_matrices("mlp_AR", joined, joined, text_width(tree), true);
  Tower(projector, Part::projector).norm("pre_norm", norms_joined ? joined : hidden, true);
  add_tower(tree, std::move(projector));
}

// A norm, and two matrices in a list over m × m patches: as Qwen2-VL calls them.
Module listed_merger(const Quantity& hidden, const Quantity& merge, const Quantity& out) {
  const Quantity joined = merge * merge * hidden;
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, true)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, out, true);
  return merger;
}

}  // namespace

void add_keye(ConfigReader& document, ModuleTree& tree) {
  add_keye_like(document, tree, false);
}

void add_keye_1_5(ConfigReader& document, ModuleTree& tree) {
  add_keye_like(document, tree, true);
}

// DotsVisionConfig: embed_dim is the tower's width, hidden_size what comes out of it.
void add_dots_ocr(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("embed_dim", 1536), patch = vision->size("patch_size", 14);
  const std::string patches = "patch_embed.patchifier.";
  Module tower{"vision_tower", "vision tower", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor(patches + "proj.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor(patches + "proj.bias", {hidden})
      .norm(patches + "norm", hidden, false);
  if (vision->flag("post_norm", true)) start.norm("post_trunk_norm", hidden, false);
  EncoderBlock block{hidden, vision->size("intermediate_size", 4224)};
  block.norm_bias = false;
  block.attention_bias = block.mlp_bias = vision->flag("use_bias", false);
  block.qkv = "attn.qkv", block.o = "attn.proj";
  block.gate = "mlp.fc1", block.up = "mlp.fc3", block.down = "mlp.fc2";
  tower.children = {
      encoder_blocks("blocks.{layer}", read_layers(*vision, "num_hidden_layers", 42), block, Part::vision),
      listed_merger(hidden, vision->size("spatial_merge_size", 2), vision->size("hidden_size", 1536))};
  add_tower(tree, std::move(tower));
}

// No table of positions, and no norm behind the blocks. Its configuration class is not at hand: the config says all.
void add_onevision2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size"), patch = vision->size("patch_size");
  Module tower{"model.visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .norm("layernorm_pre", hidden, true);
  EncoderBlock block{hidden, vision->size("intermediate_size")};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  block.qkv = "self_attn.qkv", block.o = "self_attn.proj";
  vision->size("num_hidden_layers");  // required: read_layers would take a default
  tower.children = {encoder_blocks("encoder.layers.{layer}", read_layers(*vision, "num_hidden_layers", 1),
                                   block, Part::vision),
                    listed_merger(hidden, vision->size("spatial_merge_size"), text_width(tree))};
  add_tower(tree, std::move(tower));
}

}  // namespace assay::families
