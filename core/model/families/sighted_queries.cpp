// Models that look at an image through queries that were learnt: Aria, BLIP-2, InstructBLIP, Idefics2.
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

// One attention of the queries to the patches, in torch's own layer behind matrices for q, k and v.
void add_aria(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, siglip_tower(*vision, "vision_tower", kSiglipOfIdefics3));
  const Quantity hidden = vision->size("hidden_size", 1152), out = text_width(tree);
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower whole(projector, Part::projector);
  whole.tensor("query", {document.size("max_value_projector_patch_to_query_dict", 256), hidden});
  for (const char* matrix : {"cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj"})
    whole.matrix(matrix, hidden, hidden, false);
  whole.tensor("cross_attn.multihead_attn.in_proj_weight", {Quantity(3) * hidden, hidden})
      .tensor("cross_attn.multihead_attn.in_proj_bias", {Quantity(3) * hidden})
      .matrix("cross_attn.multihead_attn.out_proj", hidden, hidden, true)
      .matrix("cross_attn.linear", hidden, hidden, true)
      .norm("cross_attn.layer_norm", hidden, true)
      .norm("cross_attn.layer_norm_kv", hidden, true)
      .norm("layer_norm", hidden, true)
      .matrix("feed_forward.linear_in", hidden, out, false)
      .matrix("feed_forward.linear_out", out, out, false);
  add_tower(tree, std::move(projector));
}

namespace {

// A ViT with a class token, whose q, k and v are one matrix.
Module blip_tower(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 1408), patch = vision.size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision.size("image_size", 224).value() / patch.value());
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {1, 1, hidden})
      .tensor("embeddings.position_embedding", {1, side * side + Quantity(1), hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, 3, patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden});
  EncoderBlock block{hidden, vision.size("intermediate_size", 6144)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2", block.attention_bias = false;
  block.qkv = "self_attn.qkv", block.o = "self_attn.projection";
  Module blocks = encoder_blocks("encoder.layers.{layer}", read_layers(vision, "num_hidden_layers", 39),
                                 block, Part::vision);
  Tower more(blocks, Part::vision);
  if (vision.flag("qkv_bias", true)) more.tensor("self_attn.qkv.bias", {Quantity(3) * hidden});
  more.tensor("self_attn.projection.bias", {hidden});
  Module last{"", "last norm", {}, {}, {}};
  Tower(last, Part::vision).norm("post_layernorm", hidden, true);
  tower.children = {std::move(blocks), std::move(last)};
  return tower;
}

// BERT's attention: what it attends to may be of another width.
void add_bert_attention(Tower& block, const std::string& path, const Quantity& hidden, const Quantity& seen) {
  block.matrix(path + ".attention.query", hidden, hidden, true)
      .matrix(path + ".attention.key", seen, hidden, true)
      .matrix(path + ".attention.value", seen, hidden, true)
      .matrix(path + ".output.dense", hidden, hidden, true)
      .norm(path + ".output.LayerNorm", hidden, true);
}

}  // namespace

// A BERT over the queries, which in some layers attend to the image. InstructBLIP's reads the instruction as well, with
// embeddings and MLPs of its own for words.
Module q_former(const QFormer& of) {
  const bool reads_words = of.words.has_value();
  Module former{"qformer", "Q-Former", {}, {}, {}};
  Tower start(former, Part::projector);
  if (reads_words) {
    start.tensor("embeddings.word_embeddings.weight", {*of.words, of.hidden})
        .tensor("embeddings.position_embeddings.weight", {of.places, of.hidden});
  }
  start.norm(reads_words ? "embeddings.layernorm" : "layernorm", of.hidden, true);
  const auto groups = group_layers(
      "encoder.layer.{layer}", of.depth,
      [&](std::uint64_t i) { return i % of.every == 0 ? "blocks that see" : "blocks"; },
      [&](Module& layer, std::uint64_t i) {
        Tower block(layer, Part::projector);
        add_bert_attention(block, "attention", of.hidden, of.hidden);
        if (i % of.every == 0) add_bert_attention(block, "crossattention", of.hidden, of.seen);
        for (const std::string kind : {"_query", ""}) {
          if (kind.empty() && !reads_words) continue;
          block.matrix("intermediate" + kind + ".dense", of.hidden, of.wide, true)
              .matrix("output" + kind + ".dense", of.wide, of.hidden, true)
              .norm("output" + kind + ".LayerNorm", of.hidden, true);
        }
      });
  former.children.assign(groups.begin(), groups.end());
  return former;
}

Module q_former(ConfigReader& config, bool reads_words) {
  QFormer of{config.size("hidden_size", 768), config.size("intermediate_size", 3072),
             config.size("encoder_hidden_size", 1408), read_layers(config, "num_hidden_layers", 12),
             config.size("cross_attention_frequency", 2).value()};
  if (reads_words) {
    of.words = config.size("vocab_size", 30522);
    of.places = config.size("max_position_embeddings", 512);
  }
  return q_former(of);
}

namespace {

void add_blip(ConfigReader& document, ModuleTree& tree, bool instructed) {
  TowerConfig vision(document, tree, "vision_config"), former(document, tree, "qformer_config");
  if (!vision || !former) return;
  add_tower(tree, blip_tower(*vision));
  const Quantity hidden = former->size("hidden_size", 768);
  add_bare(tree, "query_tokens", {1, document.size("num_query_tokens", 32), hidden});
  add_tower(tree, q_former(*former, instructed || former->flag("use_qformer_text_input", false)));
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("language_projection", hidden, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

}  // namespace

void add_blip2(ConfigReader& document, ModuleTree& tree) {
  add_blip(document, tree, false);
}
void add_instructblip(ConfigReader& document, ModuleTree& tree) {
  add_blip(document, tree, true);
}

// A gated MLP into the text's width, and layers in which latents attend to what it gives.
void add_idefics2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config"), perceiver(document, tree, "perceiver_config"),
      text(document, tree, "text_config");
  if (!vision || !perceiver || !text) return;
  add_tower(tree, siglip_tower(*vision, "model.vision_model", {.patch = 32}));
  const Quantity seen = vision->size("hidden_size", 768), out = text_width(tree);
  const Quantity between = text->size("intermediate_size", 14336);
  Module connector{"model.connector", "connector", {}, {}, {}};
  Tower(connector, Part::projector)
      .matrix("modality_projection.gate_proj", seen, between, false)
      .matrix("modality_projection.up_proj", seen, between, false)
      .matrix("modality_projection.down_proj", between, out, false);
  const Quantity hidden = perceiver->size("hidden_size", 4096),
                 dim = perceiver->size("resampler_head_dim", 96);
  const Quantity heads = perceiver->size("resampler_n_heads", 16) * dim;
  const Quantity kv_heads = perceiver->size("num_key_value_heads", 4) * dim;
  Module resampler{"perceiver_resampler", "resampler", {}, {}, {}};
  Tower(resampler, Part::projector)
      .tensor("latents", {perceiver->size("resampler_n_latents", 64), hidden})
      .norm("norm", hidden, false);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(*perceiver, "resampler_depth", 3)));
  Tower(blocks, Part::projector)
      .norm("input_latents_norm", hidden, false)
      .norm("input_context_norm", hidden, false)
      .norm("post_attention_layernorm", hidden, false)
      .matrix("self_attn.q_proj", hidden, heads, false)
      .matrix("self_attn.k_proj", hidden, kv_heads, false)
      .matrix("self_attn.v_proj", hidden, kv_heads, false)
      .matrix("self_attn.o_proj", heads, hidden, false)
      .matrix("mlp.gate_proj", hidden, Quantity(4) * hidden, false)
      .matrix("mlp.up_proj", hidden, Quantity(4) * hidden, false)
      .matrix("mlp.down_proj", Quantity(4) * hidden, hidden, false);
  resampler.children.push_back(std::move(blocks));
  connector.children.push_back(std::move(resampler));
  add_tower(tree, std::move(connector));
}

}  // namespace assay::families
