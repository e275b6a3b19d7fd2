// PaddleOCR-VL: an ERNIE 4.5 behind a SigLIP tower. Source: transformers 5.23 (paddleocr_vl), with the names of the
// checkpoints, whose config is flat: the language model's keys stand beside vision_config.
#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/seeing_forward.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kPackedPositions = 32768;

// Checkpoints hold a pooling head and a second table of positions that no class reads.
Module unread(ConfigReader& vision, const std::string& path) {
  Module rest{path, "stored, and not read", {}, {}, {}};
  const Quantity hidden = vision.size("hidden_size", kSiglipOfKeye.hidden);
  add_buffer(rest, "embeddings.packing_position_embedding.weight", {kPackedPositions, hidden.value()});
  Module head = siglip_head(vision, kSiglipOfKeye);
  for (TensorSpec& spec : head.tensors) {
    spec.role = Role::buffer, spec.part = Part::buffer, spec.storage = Storage::buffer;
  }
  rest.children.push_back(std::move(head));
  return rest;
}

void add_paddle_tower(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const std::string path = "visual.vision_model";
  const Quantity merge = vision->size("spatial_merge_size", 2);
  const Quantity hidden = vision->size("hidden_size", kSiglipOfKeye.hidden), joined = merge * merge * hidden;
  tree.towers.push_back(siglip_tower(*vision, path, kSiglipOfKeye));
  tree.towers.push_back(unread(*vision, path));
  Module projector{"mlp_AR", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("pre_norm", hidden, true)
      .matrix("linear_1", joined, joined, true)
      .matrix("linear_2", joined, text_hidden, true);
  tree.towers.push_back(std::move(projector));
}

void describe_paddleocr_vl(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 103424,
                            .hidden = 1024,
                            .intermediate = 3072,
                            .layers = 18,
                            .heads = 16,
                            .kv_heads = 2,
                            .head_dim = 128,
                            .tied = true});
  d.tied = tree.tied_embeddings = tied_in_either(config, true);
  HeadAttention a = d.attention();
  GatedMlp mlp = d.mlp();
  a.qkv_bias = a.output_bias = mlp.bias = config.flag("use_bias", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_paddle_tower(config, tree, d.hidden);
  tree.aliases = {
      {"model.", "model.language_model."}, {"visual.", "model.visual."}, {"mlp_AR.", "model.projector."}};
}

constexpr std::string_view kPaddleArchitectures[] = {"PaddleOCRVLForConditionalGeneration"};
constexpr std::string_view kPaddleTypes[] = {"paddleocr_vl", "paddleocr_vl_text"};

}  // namespace

const Family kPaddleocrVl = {
    "paddleocr_vl",        "PaddleOCR-VL",      kPaddleArchitectures, kPaddleTypes, {},
    describe_paddleocr_vl, forward_paddleocr_vl};

}  // namespace assay::families
