// Bark: three small GPTs one behind the other, of words to meanings, of meanings to a codec's first codes, and of these to all of
// them, where the last sees both sides; EnCodec makes sound. The first is told as what writes, the others as towers.
// Source: transformers 5.23 (bark).
#include "core/model/families/all_speakers.h"
#include "core/model/families/composed.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct BarkSizes {
  Decoder d;
  Quantity written, places;
  bool bias;
};

BarkSizes read_bark(ConfigReader& config) {
  BarkSizes of;
  Decoder& d = of.d;
  d.vocabulary = config.size("input_vocab_size|vocab_size", 10048);
  of.written = config.size("output_vocab_size", 10048);
  d.hidden = config.size("hidden_size", 768), d.intermediate = Quantity(4) * d.hidden;
  d.layers = read_layers(config, "num_layers|num_hidden_layers", 12);
  d.heads = d.kv_heads = config.size("num_heads|num_attention_heads", 12);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_heads");
  d.tied = false;
  of.places = config.size("block_size|window_size", 1024), of.bias = config.flag("bias", true);
  return of;
}

Module bark_layers(const BarkSizes& of, const std::string& path, bool causal) {
  const Decoder& d = of.d;
  Module layer = layers(path + ".layers.{layer}", "layers", all_layers(d.layers));
  const bool norm_bias = of.bias || !causal;
  add_norm(layer, "layernorm_1", d.hidden, Role::input_norm, norm_bias);
  add_norm(layer, "layernorm_2", d.hidden, Role::pre_feedforward_norm, norm_bias);
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "att_proj", a.o = "out_proj", a.qkv_bias = a.output_bias = of.bias;
  layer.children = {attention(a), plain_mlp({.hidden = d.hidden,
                                             .intermediate = d.intermediate,
                                             .bias = of.bias,
                                             .up = "in_proj",
                                             .down = "out_proj"})};
  const std::uint64_t n = of.places.value();
  if (causal) add_buffer(layer.children.front(), "bias", {1, 1, n, n});  // the causal mask
  return layer;
}

Module bark_places(const BarkSizes& of, const std::string& path) {
  Module table{path + ".position_embeds_layer", "places", {}, {}, {}};
  table.tensors.push_back(
      parameter("weight", {of.places, of.d.hidden}, Role::position_embedding, Part::embedding));
  return table;
}

std::vector<Module> bark_writer(const BarkSizes& of, const std::string& path) {
  return {embedding(path + ".input_embeds_layer", of.d.vocabulary, of.d.hidden), bark_places(of, path),
          bark_layers(of, path, true),
          norm(path + ".layernorm_final", of.d.hidden, Role::final_norm, of.bias),
          output_head(path + ".lm_head", of.written, of.d.hidden, false, "")};
}

// A table for each book; the heads are those of the books that follow.
std::vector<Module> bark_refiner(ConfigReader& config, const BarkSizes& of, const std::string& path) {
  const Quantity books = read_layers(config, "n_codes_total", 8);
  const std::uint64_t given = config.size("n_codes_given", 1).value();
  config.require(given < books.value(), "n_codes_given is not below n_codes_total");
  const bool tied = config.tied_embeddings(true);
  config.require(!tied || given == 1, "n_codes_given is not 1, and heads are tied to tables: not described");
  config.require(!tied || of.written.value() == of.d.vocabulary.value(),
                 "heads are tied to tables, and output_vocab_size is not input_vocab_size");
  Module tables = layers(path + ".input_embeds_layers.{layer}", "a table of each book", all_layers(books));
  tables.tensors.push_back(
      parameter("weight", {of.d.vocabulary, of.d.hidden}, Role::token_embedding, Part::embedding));
  std::vector<Module> parts = {std::move(tables), bark_places(of, path), bark_layers(of, path, false),
                               norm(path + ".layernorm_final", of.d.hidden, Role::final_norm, true)};
  for (std::uint64_t i = 0; i + given < books.value(); ++i)
    parts.push_back(output_head(path + ".lm_heads." + std::to_string(i), of.written, of.d.hidden, tied,
                                path + ".input_embeds_layers." + std::to_string(i + 1) + ".weight"));
  return parts;
}

void describe_bark(ConfigReader& config, ModuleTree& tree) {
  TowerConfig words(config, tree, "semantic_config"), coarse(config, tree, "coarse_acoustics_config"),
      fine(config, tree, "fine_acoustics_config");
  config.require(words && coarse && fine,
                 "semantic_config, coarse_acoustics_config or fine_acoustics_config is missing");
  const BarkSizes of = read_bark(*words);
  note_sizes(tree, of.d);
  tree.modules = bark_writer(of, "semantic");
  tree.attention.push_back(geometry(of.d.attention(), all_layers(of.d.layers)));
  for (Module& part : bark_writer(read_bark(*coarse), "coarse_acoustics")) add_tower(tree, std::move(part));
  for (Module& part : bark_refiner(*fine, read_bark(*fine), "fine_acoustics"))
    add_tower(tree, std::move(part));
  ModuleTree codec = describe_half(config, tree, "codec_config", Half::encoder, "codec_model");
  for (Module& part : codec.modules) add_tower(tree, std::move(part));
  tree.not_counted.push_back({"what the second model caches", std::nullopt});
}

constexpr std::string_view kBarkArchitectures[] = {"BarkModel"}, kBarkTypes[] = {"bark"};

}  // namespace

const Family kBark = {"bark", "Bark", kBarkArchitectures, kBarkTypes, {}, describe_bark};

}  // namespace assay::families
