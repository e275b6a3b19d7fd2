// Molmo (Ai2, 2024): a Qwen2, or an OLMo whose norms follow, behind a CLIP two of whose layers are pooled by attention.
// Names: the published weights, as vLLM 0.33 reads them.
#include "core/model/families/all_2026.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kNewTokens = 128;  // rows of their own, behind the table of the others
const std::string kMolmo1 = "model.transformer.", kMolmo1Eyes = "model.vision_backbone";

// CLIP ViT-L/14 of 336 pixels, whose last layer nobody reads: no key of the config tells of it.
struct MolmoVit {
  std::uint64_t width = 1024, wide = 4096, layers = 23, places = 577, patch = 14, pooled = 2;
};
constexpr MolmoVit kMolmoVit;

void add_molmo_heads(Tower& tower, const std::string& path, const Quantity& in) {
  for (const char* matrix : {".wq", ".wk", ".wv"}) tower.matrix(path + matrix, in, kMolmoVit.width, true);
  tower.matrix(path + ".wo", kMolmoVit.width, kMolmoVit.width, true);
}

Module molmo_vit() {
  const Quantity width = kMolmoVit.width, wide = kMolmoVit.wide;
  Module tower{kMolmo1Eyes + ".image_vit", "vision tower (CLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("class_embedding", {width})
      .tensor("positional_embedding", {kMolmoVit.places, width})
      .matrix("patch_embedding", 3 * kMolmoVit.patch * kMolmoVit.patch, width, false)
      .norm("pre_ln", width, true);
  Module blocks = layers("transformer.resblocks.{layer}", "blocks", all_layers(Quantity(kMolmoVit.layers)));
  Tower block(blocks, Part::vision);
  add_molmo_heads(block, "attention", width);
  block.matrix("feed_forward.w1", width, wide, true)
      .matrix("feed_forward.w2", wide, width, true)
      .norm("attention_norm", width, true)
      .norm("ffn_norm", width, true);
  tower.children = {std::move(blocks)};
  return tower;
}

void add_molmo_eyes(ModuleTree& tree, const Quantity& between) {
  add_tower(tree, molmo_vit());
  const Quantity width = kMolmoVit.width, out = text_width(tree);
  const Quantity pooled = Quantity(kMolmoVit.pooled) * width;
  Module projector{kMolmo1Eyes, "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  into.tensor("pad_embed", {2, pooled});
  add_molmo_heads(into, "image_pooling_2d", pooled);
  into.matrix("image_projector.w1", width, between, false)
      .matrix("image_projector.w3", width, between, false)
      .matrix("image_projector.w2", between, out, false);
  add_tower(tree, std::move(projector));
}

void describe_molmo(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0});
  d.vocabulary = config.size("embedding_size", d.vocabulary);
  d.tied = tree.tied_embeddings = config.flag("weight_tying", d.tied);
  // intermediate_size is the width of gate and up together.
  d.intermediate = config.quotient(d.intermediate, 2, "intermediate_size / 2");
  HeadAttention a = d.attention();
  a.path = "", a.fused = "att_proj", a.o = "attn_out";
  a.qkv_bias = config.flag("qkv_bias", false);
  if (config.flag("attention_layer_norm", false)) a.qk_norm = QkNorm::full_width;
  GatedMlp mlp = d.mlp();
  mlp.path = "", mlp.fused = "ff_proj", mlp.down = "ff_out";
  const bool after = config.flag("norm_after", false);
  Module layer = layers(kMolmo1 + "blocks.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "attn_norm", d.hidden, after ? Role::post_attention_norm : Role::input_norm);
  add_norm(layer, "ff_norm", d.hidden, after ? Role::post_feedforward_norm : Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = kMolmo1 + "wte", .final_norm = kMolmo1 + "ln_f", .head = kMolmo1 + "ff_out"});
  Module& table = tree.modules.front();
  table.tensors.front().name = "embedding";
  table.tensors.push_back(
      parameter("new_embedding", {kNewTokens, d.hidden}, Role::token_embedding, Part::embedding));
  if (d.tied) tree.modules.back().tensors.front().same_as = kMolmo1 + "wte.embedding";
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_molmo_eyes(tree, d.intermediate);
}

constexpr std::string_view kMolmo1Architectures[] = {"MolmoForCausalLM"}, kMolmo1Types[] = {"molmo"};

}  // namespace

const Family kMolmo = {"molmo", "Molmo", kMolmo1Architectures, kMolmo1Types, {}, describe_molmo, nullptr};

}  // namespace assay::families
