// Kosmos-2 and Kosmos-2.5: a decoder with norms within attention and MLP, in front of which learnt queries look at an image:
// through a CLIP, or through flat patches of any shape with a table for rows and one for columns. Places are sines, which no
// checkpoint holds. Source: transformers 5.24 (kosmos2, kosmos2_5).
#include "core/model/families/all_more.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct KosmosClass {
  std::uint64_t vocabulary, hidden, wide, heads, queries;
  bool normed_attention;  // of what it gives, before o
  bool segments;          // a table of two rows tells words from images
};

void add_text(ConfigReader& config, ModuleTree& tree, const KosmosClass& of) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("embed_dim", of.hidden);
  d.intermediate = config.size("ffn_dim", of.wide);
  d.layers = read_layers(config, "layers", 24);
  d.heads = d.kv_heads = config.size("attention_heads", of.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "embed_dim / attention_heads");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  HeadAttention a = d.attention();
  a.o = "out_proj", a.qkv_bias = a.output_bias = true;
  Module layer = layers("text_model.model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  add_norm(layer, "final_layer_norm", d.hidden, Role::pre_feedforward_norm, true);
  Module attend = attention(a);
  if (of.normed_attention) add_norm(attend, "inner_attn_ln", d.hidden, Role::post_attention_norm, true);
  Module mlp = plain_mlp(
      {.hidden = d.hidden, .intermediate = d.intermediate, .path = "ffn", .up = "fc1", .down = "fc2"});
  add_norm(mlp, "ffn_layernorm", d.intermediate, Role::post_feedforward_norm, true);
  layer.children = {std::move(attend), std::move(mlp)};
  add_frame(tree, d, {std::move(layer)},
            {.embedding = "text_model.model.embed_tokens",
             .final_norm = "text_model.model.layer_norm",
             .head = "text_model.lm_head",
             .norm_bias = true});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  if (!of.segments) return;
  Module table{"text_model.model", "words or image", {}, {}, {}};
  table.tensors.push_back(
      parameter("segment_emb.weight", {2, d.hidden}, Role::position_embedding, Part::embedding));
  tree.modules.insert(tree.modules.begin() + 1, std::move(table));
}

// Queries as wide as the text attend to what was seen.
void add_queries(ConfigReader& config, ModuleTree& tree, const KosmosClass& of, const Quantity& seen) {
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, tree.family);
  const Quantity hidden = text_width(tree);
  Module projector{"image_to_text_projection", "projector", {}, {}, {}};
  Tower whole(projector, Part::projector);
  whole.tensor("latent_query", {document.size("latent_query_num", of.queries), hidden})
      .matrix("dense", seen, hidden, true);
  for (const char* matrix : {"x_attn.k_proj", "x_attn.v_proj", "x_attn.q_proj", "x_attn.out_proj"})
    whole.matrix(matrix, hidden, hidden, true);
  add_tower(tree, std::move(projector));
}

void describe_kosmos2(ConfigReader& config, ModuleTree& tree) {
  constexpr KosmosClass kClass = {65037, 2048, 8192, 32, 64, true, false};
  add_text(config, tree, kClass);
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  constexpr ClipClass kClip = {.hidden = 1024, .patch = 14, .image = 224, .intermediate = 4096, .layers = 24};
  add_tower(tree, clip_tower(*vision, "vision_model.model", kClip));
  add_queries(config, tree, kClass, vision->size("hidden_size", 1024));
}

// Pix2Struct's encoder: flat patches, norms without biases.
Module flat_tower(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 1536), places = vision.size("max_num_patches", 4096);
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("embeddings.patch_projection", vision.size("patch_embed_hidden_size", 768), hidden, true)
      .tensor("embeddings.row_embedder.weight", {places, hidden})
      .tensor("embeddings.column_embedder.weight", {places, hidden});
  EncoderBlock block{hidden, vision.size("intermediate_size", 3968)};
  block.norm1 = "pre_attention_layer_norm", block.norm2 = "pre_mlp_layer_norm";
  block.q = "attention.query", block.k = "attention.key", block.v = "attention.value";
  block.o = "attention.output";
  block.gate = "mlp.wi_0", block.up = "mlp.wi_1", block.down = "mlp.wo";
  block.norm_bias = block.attention_bias = block.mlp_bias = false;
  block.attention_width = vision.size("num_attention_heads", 24) * vision.size("head_dim", 64);
  Module last{"", "last norm", {}, {}, {}};
  Tower(last, Part::vision).norm("layernorm", hidden, false);
  tower.children = {encoder_blocks("encoder.layer.{layer}", read_layers(vision, "num_hidden_layers", 18),
                                   block, Part::vision),
                    std::move(last)};
  return tower;
}

void describe_kosmos2_5(ConfigReader& config, ModuleTree& tree) {
  constexpr KosmosClass kClass = {108481, 1536, 6144, 16, 2048, false, true};
  add_text(config, tree, kClass);
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, flat_tower(*vision));
  add_queries(config, tree, kClass, vision->size("hidden_size", 1536));
}

constexpr std::string_view kKosmos2Architectures[] = {"Kosmos2ForConditionalGeneration"},
                           kKosmos2Types[] = {"kosmos-2"},
                           kKosmos25Architectures[] = {"Kosmos2_5ForConditionalGeneration"},
                           kKosmos25Types[] = {"kosmos-2.5"};

}  // namespace

const Family kKosmos2 = {"kosmos2", "Kosmos-2", kKosmos2Architectures, kKosmos2Types, {}, describe_kosmos2};
const Family kKosmos25 = {"kosmos2_5",    "Kosmos-2.5", kKosmos25Architectures,
                          kKosmos25Types, {},           describe_kosmos2_5};

}  // namespace assay::families
