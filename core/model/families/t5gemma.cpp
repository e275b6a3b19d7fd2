// T5Gemma and T5Gemma 2: two Gemmas, of which one reads and the other writes what it attends to; the sizes of each stand in a
// section of their own. T5Gemma is a pair of Gemmas 2, of other widths in 9B-2B, and its decoder attends to the encoder in a
// block of its own. T5Gemma 2 is a pair of Gemmas 3 with one table for both, whose decoder attends to both sides at once with
// the same matrices, and whose encoder sees. Source: transformers 5.24 (t5gemma, t5gemma2).
#include <algorithm>

#include "core/model/families/all_more.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr DecoderDefaults side_of(std::uint64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .hidden = 2304,
          .intermediate = 9216,
          .layers = 26,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 256,
          .tied = true};
}
constexpr DecoderDefaults kGemma2Side = side_of(256000), kGemma3Side = side_of(262208);

struct Side {
  Decoder d;
  HeadAttention a;
};

Side read_side(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& of_class, bool normed) {
  const Decoder d = read_decoder(config, tree, of_class);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  if (normed) a.qk_norm = QkNorm::per_head;
  return {d, a};
}

// `seen`: the width of what a block of its own attends to; none: there is no such block.
Module side_layers(const Side& side, const std::string& path, std::string title,
                   const std::optional<Quantity>& seen) {
  const Quantity& hidden = side.d.hidden;
  Module layer = layers(path + ".layers.{layer}", std::move(title), all_layers(side.d.layers));
  add_norm(layer, "pre_self_attn_layernorm", hidden, Role::input_norm);
  add_norm(layer, "post_self_attn_layernorm", hidden, Role::post_attention_norm);
  add_norm(layer, "pre_feedforward_layernorm", hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm", hidden, Role::post_feedforward_norm);
  layer.children = {attention(side.a)};
  if (seen) {
    add_norm(layer, "pre_cross_attn_layernorm", hidden, Role::input_norm);
    add_norm(layer, "post_cross_attn_layernorm", hidden, Role::post_attention_norm);
    HeadAttention across = side.a;
    across.path = "cross_attn";
    Module attend = attention(across);
    for (TensorSpec& spec : attend.tensors) {  // keys and values are of what was read
      if ((spec.role != Role::k && spec.role != Role::v) || spec.bias) continue;
      spec.shape[1] = seen->value();
      spec.elements = side.d.kv_heads * side.d.head_dim * *seen;
    }
    layer.children.push_back(std::move(attend));
  }
  layer.children.push_back(gated_mlp(side.d.mlp()));
  return layer;
}

// Of the decoder alone: what the encoder's layers see caches nothing that grows.
void add_windows(ConfigReader& config, ModuleTree& tree, const Side& writes,
                 const std::function<bool(std::uint64_t)>& otherwise) {
  const auto window = config.optional_number("sliding_window", 4096);
  const auto windowed = windowed_layers(config, writes.d.layers, otherwise);
  config.require(windowed.empty() || window, "layer_types names windows, and sliding_window is null");
  add_geometry(tree, writes.a, writes.d.layers, windowed, window.value_or(0));
}

void describe_t5gemma(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder"), decoder(config, tree, "decoder");
  config.require(encoder && decoder, "encoder or decoder is missing, which tell the sizes of both sides");
  const Side reads = read_side(*encoder, tree, kGemma2Side, false);
  const Side writes = read_side(*decoder, tree, kGemma2Side, false);  // the tree has its sizes
  const bool tied = tree.tied_embeddings = config.tied_embeddings(true);
  tree.layers = std::max(reads.d.layers.value(), writes.d.layers.value());
  tree.modules = {embedding("model.encoder.embed_tokens", reads.d.vocabulary, reads.d.hidden),
                  side_layers(reads, "model.encoder", "encoder's layers", std::nullopt),
                  norm("model.encoder.norm", reads.d.hidden, Role::final_norm),
                  embedding("model.decoder.embed_tokens", writes.d.vocabulary, writes.d.hidden),
                  side_layers(writes, "model.decoder", "decoder's layers", reads.d.hidden),
                  norm("model.decoder.norm", writes.d.hidden, Role::final_norm),
                  output_head("lm_head.out_proj", writes.d.vocabulary, writes.d.hidden, tied,
                              "model.decoder.embed_tokens.weight")};
  add_windows(*decoder, tree, writes, [](std::uint64_t i) { return i % 2 == 0; });
}

void add_eyes(ConfigReader& encoder, ModuleTree& tree, const Quantity& out) {
  TowerConfig vision(encoder, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "model.encoder.vision_tower", "siglip_vision_model")) return;
  const Quantity seen = vision->size("hidden_size", 768);
  Module projector{"model.encoder.multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("mm_input_projection_weight", {seen, out})
      .norm("mm_soft_emb_norm", seen, false);
  add_tower(tree, std::move(projector));
  add_bare(tree, "model.encoder.embed_tokens.eoi_embedding", {out});  // what ends an image
}

void describe_t5gemma2(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder"), decoder(config, tree, "decoder");
  config.require(encoder && decoder, "encoder or decoder is missing, which tell the sizes of both sides");
  TowerConfig text(*encoder, tree, "text_config");
  config.require(static_cast<bool>(text), "encoder.text_config is missing, which tells the encoder's sizes");
  const Side reads = read_side(*text, tree, kGemma3Side, true);
  const Side writes = read_side(*decoder, tree, kGemma3Side, true);
  config.require(reads.d.hidden.value() == writes.d.hidden.value() &&
                     reads.d.vocabulary.value() == writes.d.vocabulary.value(),
                 "encoder and decoder differ in width or vocabulary: T5Gemma 2 has one table for both");
  const bool tied = tree.tied_embeddings = config.tied_embeddings(true);
  tree.layers = std::max(reads.d.layers.value(), writes.d.layers.value());
  const std::string table = "model.encoder.embed_tokens";
  tree.modules = {
      embedding(table, reads.d.vocabulary, reads.d.hidden),
      side_layers(reads, "model.encoder", "encoder's layers", std::nullopt),
      norm("model.encoder.norm", reads.d.hidden, Role::final_norm),
      side_layers(writes, "model.decoder", "decoder's layers", std::nullopt),
      norm("model.decoder.norm", writes.d.hidden, Role::final_norm),
      output_head("lm_head.out_proj", writes.d.vocabulary, writes.d.hidden, tied, table + ".weight")};
  const std::uint64_t every = decoder->size("sliding_window_pattern", 6).value();
  add_windows(*decoder, tree, writes, [every](std::uint64_t i) { return (i + 1) % every != 0; });
  add_eyes(*encoder, tree, writes.d.hidden);
}

constexpr std::string_view kT5GemmaArchitectures[] = {"T5GemmaForConditionalGeneration"},
                           kT5GemmaTypes[] = {"t5gemma"},
                           kT5Gemma2Architectures[] = {"T5Gemma2ForConditionalGeneration"},
                           kT5Gemma2Types[] = {"t5gemma2"};

}  // namespace

const Family kT5Gemma = {"t5gemma", "T5Gemma", kT5GemmaArchitectures, kT5GemmaTypes, {}, describe_t5gemma};
const Family kT5Gemma2 = {"t5gemma2",     "T5Gemma 2", kT5Gemma2Architectures,
                          kT5Gemma2Types, {},          describe_t5gemma2};

}  // namespace assay::families
