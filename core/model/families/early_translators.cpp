// Readers and writers beside BART: FSMT, with a vocabulary for each language (fairseq's of WMT 19), ProphetNet, which guesses several
// tokens at once, and Pix2Struct, a T5 that reads pictures of pages. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Of a side of either: sizes under keys with its name.
struct SideKeys {
  std::string wide, layers, heads;
};

void read_side(ConfigReader& config, Decoder& d, const SideKeys& keys) {
  d.intermediate = config.size(keys.wide, 4096), d.layers = read_layers(config, keys.layers, 12);
  d.heads = d.kv_heads = config.size(keys.heads, 16);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden size / " + keys.heads);
}

void describe_fsmt(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  const Quantity read = config.size("src_vocab_size", 42024);
  d.vocabulary = config.size("tgt_vocab_size", 42024), d.hidden = config.size("d_model", 1024);
  d.tied = config.tied_embeddings(false);
  const std::uint64_t places = config.size("max_position_embeddings", 1024).value();
  const std::string shared = "model.decoder.embed_tokens.weight";  // of all, where they are tied
  Quantity depth_read;
  for (const std::string side : {"encoder", "decoder"}) {
    const bool writes = side == "decoder";
    const std::string path = "model." + side;
    read_side(config, d, {side + "_ffn_dim", side + "_layers", side + "_attention_heads"});
    if (!writes) depth_read = d.layers;
    tree.modules.push_back(embedding(path + ".embed_tokens", writes ? d.vocabulary : read, d.hidden));
    if (!writes && d.tied) {
      TensorSpec& table = tree.modules.back().tensors.front();
      config.require(read.value() == d.vocabulary.value(),
                     "tables of unequal vocabularies are said to be tied");
      table.storage = Storage::tied, table.same_as = shared;
    }
    Module sines{path, side + "'s places", {}, {}, {}};
    add_buffer(sines, "embed_positions.weight", {places + 2, d.hidden.value()});
    tree.modules.push_back(std::move(sines));
    tree.modules.push_back(bart_layers(d, path, side + "'s layers", writes));
  }
  tree.modules.push_back(
      output_head("model.decoder.output_projection", d.vocabulary, d.hidden, d.tied, shared));
  note_sizes(tree, d);
  note_both_sides(tree, d.attention(), d.layers, depth_read);
}

HeadAttention prophet_heads(const Decoder& d, std::string path) {
  HeadAttention a = d.attention();
  a.path = std::move(path), a.qkv_bias = a.output_bias = true;
  a.q = "query_proj", a.k = "key_proj", a.v = "value_proj", a.o = "out_proj";
  return a;
}

// Where it writes, scores by distance are made of each token.
Module prophet_layers(ConfigReader& config, const Decoder& d, const std::string& path,
                      const std::string& title, bool writes) {
  Module layer = layers(path + ".layers.{layer}", title, all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
  if (writes) add_norm(layer, "cross_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "feed_forward_layer_norm", d.hidden, Role::post_feedforward_norm, true);
  Module own = attention(prophet_heads(d, "self_attn"));
  if (writes)
    add_linear(own, {.name = "relative_pos_embeddings",
                     .in = d.hidden,
                     .out = config.size("num_buckets", 32) * d.heads,
                     .role = Role::other,
                     .part = Part::attention,
                     .bias = true});
  layer.children.push_back(std::move(own));
  if (writes) layer.children.push_back(attention(prophet_heads(d, "cross_attn")));
  layer.children.push_back(plain_mlp({.hidden = d.hidden,
                                      .intermediate = d.intermediate,
                                      .path = "feed_forward",
                                      .up = "intermediate",
                                      .down = "output"}));
  return layer;
}

void describe_prophetnet(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture().ends_with("Model");
  const bool writes_alone = config.config().architecture().ends_with("ForCausalLM");
  const std::string prefix = alone ? "" : "prophetnet.";
  Decoder d;
  d.vocabulary = config.size("vocab_size", 30522), d.hidden = config.size("hidden_size|d_model", 1024);
  d.tied = config.tied_embeddings(true);
  config.require(d.tied, "tie_word_embeddings is false: tables for each side are not described");
  tree.modules = {embedding(prefix + "word_embeddings", d.vocabulary, d.hidden)};
  const Quantity places = config.size("max_position_embeddings", 512);
  Quantity read = 0;
  for (const std::string side : {"encoder", "decoder"}) {
    const bool writes = side == "decoder";
    if (writes_alone && !writes) continue;
    read_side(config, d, {side + "_ffn_dim", "num_" + side + "_layers", "num_" + side + "_attention_heads"});
    if (!writes) read = d.layers;
    const std::string path = prefix + side;
    Module tables{path, side + "'s places", {}, {}, {}};
    const auto table = [&](const char* name, const Quantity& rows) {
      tables.tensors.push_back(parameter(name, {rows, d.hidden}, Role::position_embedding, Part::embedding));
    };
    table("position_embeddings.weight", places);
    if (writes) table("ngram_embeddings.weight", config.size("ngram", 2));
    add_norm(tables, "embeddings_layer_norm", d.hidden, Role::embedding_norm, true);
    tree.modules.push_back(std::move(tables));
    tree.modules.push_back(prophet_layers(config, d, path, side + "'s layers", writes));
  }
  if (alone)
    tree.aliases = {{"", "prophetnet."}};
  else
    tree.modules.push_back(
        output_head("lm_head", d.vocabulary, d.hidden, true, prefix + "word_embeddings.weight"));
  note_sizes(tree, d);
  note_both_sides(tree, d.attention(), d.layers, read);
}

// Pix2Struct's side that sees: rows and columns have places of their own.
Module page_reader(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 768), width = vision.size("d_ff", 2048);
  const Quantity attended = vision.size("num_attention_heads", 12) * vision.size("d_kv", 64);
  const Quantity places = vision.size("seq_len", 4096);
  Module tower{"encoder", "vision tower (Pix2Struct)", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("embeddings.patch_projection", vision.size("patch_embed_hidden_size", 768), hidden, true)
      .tensor("embeddings.row_embedder.weight", {places, hidden})
      .tensor("embeddings.column_embedder.weight", {places, hidden})
      .norm("layernorm", hidden, false);
  EncoderBlock block{hidden, width};
  block.norm1 = "pre_attention_layer_norm", block.norm2 = "pre_mlp_layer_norm", block.norm_bias = false;
  block.attention_width = attended, block.attention_bias = block.mlp_bias = false;
  block.q = "attention.query", block.k = "attention.key", block.v = "attention.value";
  block.o = "attention.output";
  block.gate = "mlp.wi_0", block.up = "mlp.wi_1", block.down = "mlp.wo";
  tower.children = {encoder_blocks("encoder.layer.{layer}", read_layers(vision, "num_hidden_layers", 12),
                                   block, Part::vision)};
  return tower;
}

HeadAttention page_heads(const Decoder& d, std::string path) {
  HeadAttention a = d.attention();
  a.path = std::move(path);
  a.q = "attention.query", a.k = "attention.key", a.v = "attention.value", a.o = "attention.output";
  return a;
}

void describe_pix2struct(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 50244), d.hidden = config.size("hidden_size", 768);
  d.intermediate = config.size("d_ff", 2048), d.layers = read_layers(config, "num_layers", 12);
  d.heads = d.kv_heads = config.size("num_heads", 12), d.head_dim = config.size("d_kv", 64);
  d.tied = config.tied_embeddings(false);
  config.require((d.heads * d.head_dim).value() == d.hidden.value(), "hidden_size is not num_heads × d_kv");
  note_sizes(tree, d);
  Module distances{"decoder.layer.0", "scores by distance, for all layers", {}, {}, {}};
  distances.tensors.push_back(parameter("self_attention.attention.relative_attention_bias.weight",
                                        {config.size("relative_attention_num_buckets", 32), d.heads},
                                        Role::position_embedding, Part::attention));
  Module layer = layers("decoder.layer.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_attention.layer_norm", d.hidden, Role::input_norm);
  add_norm(layer, "encoder_decoder_attention.layer_norm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "mlp.layer_norm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(page_heads(d, "self_attention")),
                    attention(page_heads(d, "encoder_decoder_attention")),
                    gated_mlp({d.hidden, d.intermediate, "mlp.DenseReluDense", Part::dense_mlp, false, "wi_0",
                               "wi_1", "wo"})};
  tree.modules = {
      embedding("decoder.embed_tokens", d.vocabulary, d.hidden), std::move(distances), std::move(layer),
      norm("decoder.final_layer_norm", d.hidden, Role::final_norm),
      output_head("decoder.lm_head", d.vocabulary, d.hidden, d.tied, "decoder.embed_tokens.weight")};
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_tower(tree, page_reader(*vision));
}

constexpr std::string_view kFsmtArchitectures[] = {"FSMTForConditionalGeneration"}, kFsmtTypes[] = {"fsmt"},
                           kProphetArchitectures[] = {"ProphetNetForConditionalGeneration", "ProphetNetModel",
                                                      "ProphetNetForCausalLM",
                                                      "XLMProphetNetForConditionalGeneration"},
                           kProphetTypes[] = {"prophetnet", "xlm-prophetnet"},
                           kPix2structArchitectures[] = {"Pix2StructForConditionalGeneration"},
                           kPix2structTypes[] = {"pix2struct"};

}  // namespace

const Family kFsmt = {"fsmt", "FSMT (WMT 19)", kFsmtArchitectures, kFsmtTypes, {}, describe_fsmt};
const Family kProphetnet = {"prophetnet",  "ProphetNet", kProphetArchitectures,
                            kProphetTypes, {},           describe_prophetnet};
const Family kPix2struct = {"pix2struct",     "Pix2Struct", kPix2structArchitectures,
                            kPix2structTypes, {},           describe_pix2struct};

}  // namespace assay::families
