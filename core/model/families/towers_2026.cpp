// Towers of one family each: Llama 4, Kimi's MoonViT, MiniMax-M3, Step 3.7.
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_llama4_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 768), width = vision->size("intermediate_size", 5632);
  const Quantity patch = vision->size("patch_size", 14), image = vision->size("image_size", 448);
  const Quantity side("image_size / patch_size", image.value() / patch.value());
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("class_embedding", {hidden})
      .tensor("positional_embedding_vlm", {side * side + Quantity(1), hidden})
      .matrix("patch_embedding.linear", vision->size("num_channels", 3) * patch * patch, hidden, false)
      .norm("layernorm_pre", hidden, true)
      .norm("layernorm_post", hidden, true);
  EncoderBlock block{hidden, width};
  block.norm1 = "input_layernorm", block.norm2 = "post_attention_layernorm", block.o = "self_attn.o_proj";
  // Pixel shuffle joins 1 / ratio² patches; it comes to fc1's inputs, which are as wide as the blocks' MLP.
  const Quantity in = vision->size("projector_input_dim", 4096),
                 out = vision->size("projector_output_dim", 4096);
  Module adapter{"vision_adapter", "adapter", {}, {}, {}};
  Tower(adapter, Part::projector).matrix("mlp.fc1", width, in, false).matrix("mlp.fc2", out, out, false);
  tower.children = {encoder_blocks("model.layers.{layer}", read_layers(*vision, "num_hidden_layers", 34),
                                   block, Part::vision),
                    std::move(adapter)};
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear_1", vision->size("vision_output_dim", 7680), text_hidden, false);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

// Kimi-VL and K2.5 have LayerNorms and biases everywhere; K3 RMSNorms, none, and attention of a width of its own.
Module moonvit_tower(ConfigReader& vision, std::string path) {
  const Quantity hidden = vision.size("vt_hidden_size|hidden_size", 1152),
                 patch = vision.size("patch_size", 14);
  const bool rms = vision.text("norm_type", "layernorm") == "rmsnorm";
  Module tower{std::move(path), "vision tower (MoonViT)", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor("patch_embed.proj.weight", {hidden, 3, patch, patch});
  if (vision.flag("patch_embed_proj_bias", true)) start.tensor("patch_embed.proj.bias", {hidden});
  start.tensor("patch_embed.pos_emb.weight", {vision.size("init_pos_emb_height|pos_emb_height", 64),
                                              vision.size("init_pos_emb_width|pos_emb_width", 64), hidden});
  EncoderBlock block{hidden, vision.size("vt_intermediate_size|intermediate_size", 4304)};
  block.norm1 = "norm0", block.norm2 = "norm1", block.norm_bias = !rms;
  block.qkv = "wqkv", block.o = "wo", block.attention_bias = vision.flag("attn_bias", true);
  block.attention_width = vision.optional_size("qkv_hidden_size");
  block.up = "mlp.fc0", block.down = "mlp.fc1", block.mlp_bias = vision.flag("linear_bias", true);
  Module rest{"encoder", "last norm", {}, {}, {}};
  Tower(rest, Part::vision).norm("final_layernorm", hidden, !rms);
  tower.children = {
      encoder_blocks("encoder.blocks.{layer}",
                     read_layers(vision, "vt_num_hidden_layers|num_hidden_layers", 27), block, Part::vision),
      std::move(rest)};
  return tower;
}

Quantity moonvit_joined(ConfigReader& vision) {
  const auto merged = vision.numbers("merge_kernel_size");
  vision.require(!merged || (merged->size() == 2 && (*merged)[0] > 0 && (*merged)[1] > 0),
                 "vision_config.merge_kernel_size is not a list of two sizes");
  return Quantity(merged ? (*merged)[0] * (*merged)[1] : 4) * vision.size("vt_hidden_size|hidden_size", 1152);
}

void add_moonvit(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("vt_hidden_size|hidden_size", 1152), joined = moonvit_joined(*vision);
  const bool second = vision->text("mm_projector_type", "patchmerger") == "patchmergerv2";
  Module projector{"mm_projector", "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  if (!second) into.norm("pre_norm", hidden, true);
  into.matrix("proj.0", joined, joined, !second).matrix("proj.2", joined, text_hidden, !second);
  if (second) into.norm("post_norm", text_hidden, false);
  tree.towers.push_back(moonvit_tower(*vision, "vision_tower"));
  tree.towers.push_back(std::move(projector));
}

void add_minimax_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1280), patch = vision->size("patch_size", 14);
  std::uint64_t merge = 2, frames = 2;
  if (const auto nested = config.config().section("img_token_compression_config")) {
    ConfigReader compression(*nested, "minimax_m3_vl");
    merge = compression.number("spatial_merge_size", 2);
    frames = compression.number("temporal_patch_size", 2);
  }
  config.require(merge >= 1 && frames >= 1, "img_token_compression_config holds a 0");
  Module tower{"vision_tower.vision_model", "vision tower (CLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3),
                                                    Quantity("temporal_patch_size", frames), patch, patch})
      .norm("pre_layrnorm", hidden, true);  // as CLIP spells it
  EncoderBlock block{hidden, vision->size("intermediate_size", 5120)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  tower.children = {encoder_blocks("encoder.layers.{layer}", read_layers(*vision, "num_hidden_layers", 32),
                                   block, Part::vision)};
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, "minimax_m3_vl");
  const Quantity width = document.size("projector_hidden_size", 6144);
  const bool bias = document.flag("multimodal_projector_bias", true);
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear_1", hidden, width, bias)
      .matrix("linear_2", width, text_hidden, bias);
  Module merger{"patch_merge_mlp", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .matrix("linear_1", Quantity(merge * merge) * text_hidden, width, bias)
      .matrix("linear_2", width, text_hidden, bias);
  for (Module* module : {&tower, &projector, &merger}) tree.towers.push_back(std::move(*module));
}

void add_step_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("width|hidden_size", 1536), patch = vision->size("patch_size", 14);
  const Quantity image = vision->size("image_size", 728);
  const Quantity side("image_size / patch_size", image.value() / patch.value());
  const double ratio = vision->real("mlp_ratio", 8960.0 / 1536.0, 1e-3, 1e3);
  const Quantity width("mlp_ratio × width",
                       static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * ratio));
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("conv1.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("positional_embedding", {side * side, hidden})
      .norm("ln_pre", hidden, true);
  Module blocks = layers("transformer.resblocks.{layer}", "blocks",
                         all_layers(read_layers(*vision, "layers|num_hidden_layers", 47)));
  Tower(blocks, Part::vision)
      .norm("ln_1", hidden, true)
      .tensor("attn.in_proj_weight", {Quantity(3) * hidden, hidden})
      .tensor("attn.in_proj_bias", {Quantity(3) * hidden})
      .matrix("attn.out_proj", hidden, hidden, true)
      .norm("ln_2", hidden, true)
      .matrix("mlp.c_fc", hidden, width, true)
      .matrix("mlp.c_proj", width, hidden, true)
      .tensor("ls_1.gamma", {hidden})
      .tensor("ls_2.gamma", {hidden});
  Module down{"", "strided convolutions", {}, {}, {}};
  Tower(down, Part::vision)
      .tensor("vit_downsampler1.weight", {Quantity(2) * hidden, hidden, 3, 3})
      .tensor("vit_downsampler1.bias", {Quantity(2) * hidden})
      .tensor("vit_downsampler2.weight", {Quantity(4) * hidden, Quantity(2) * hidden, 3, 3})
      .tensor("vit_downsampler2.bias", {Quantity(4) * hidden});
  tower.children = {std::move(blocks), std::move(down)};
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("vit_large_projector", Quantity(4) * hidden, text_hidden, false);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

}  // namespace assay::families
