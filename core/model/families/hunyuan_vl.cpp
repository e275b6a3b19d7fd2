// HunyuanOCR: a Hunyuan behind a tower that merges patches with convolutions. Source: transformers 5.23 (hunyuan_vl),
// with the names of the checkpoints.
#include "core/model/families/all_2026.h"
#include "core/model/families/seeing_forward.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Module merger_of(ConfigReader& vision, const Quantity& hidden, const Quantity& text) {
  const Quantity merge = vision.size("spatial_merge_size", 2);
  const Quantity between = Quantity(2) * hidden, wide = Quantity(4) * hidden;
  Module merger{"perceive", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .tensor("proj.0.weight", {between, hidden, merge, merge})
      .tensor("proj.0.bias", {between})
      .tensor("proj.2.weight", {wide, between, 1, 1})
      .tensor("proj.2.bias", {wide})
      .matrix("mlp", wide, text, true)
      .tensor("image_newline", {wide})
      .tensor("image_begin", {text})
      .tensor("image_end", {text})
      .tensor("image_sep", {text})
      .norm("before_rms", hidden, false)
      .norm("after_rms", text, false);
  return merger;
}

void add_hunyuan_tower(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1152), patch = vision->size("patch_size", 16);
  const Quantity side("max_image_size / patch_size",
                      vision->size("max_image_size", 2048).value() / patch.value());
  Module tower{"vit", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side + Quantity(1), hidden});
  EncoderBlock block{hidden, vision->size("intermediate_size", 4304)};
  block.norm1 = "input_layernorm", block.norm2 = "post_attention_layernorm";
  block.o = "self_attn.o_proj", block.up = "mlp.dense_h_to_4h", block.down = "mlp.dense_4h_to_h";
  tower.children = {
      encoder_blocks("layers.{layer}", read_layers(*vision, "num_hidden_layers", 27), block, Part::vision),
      merger_of(*vision, hidden, text_hidden)};
  tree.towers.push_back(std::move(tower));
}

void describe_hunyuan_vl(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 290943, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .tied = true});
  d.tied = tree.tied_embeddings = tied_in_either(config, true);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  a.q_norm = "query_layernorm", a.k_norm = "key_layernorm";
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_hunyuan_tower(config, tree, d.hidden);
  tree.aliases = {{"model.", "model.language_model."}, {"vit.", "model.vision_tower."}};
}

constexpr std::string_view kHunyuanVlArchitectures[] = {"HunYuanVLForConditionalGeneration"};
constexpr std::string_view kHunyuanVlTypes[] = {"hunyuan_vl", "hunyuan_vl_text"};

}  // namespace

const Family kHunyuanVl = {"hunyuan_vl", "HunyuanOCR",        kHunyuanVlArchitectures, kHunyuanVlTypes,
                           {},           describe_hunyuan_vl, forward_hunyuan_vl};

}  // namespace assay::families
