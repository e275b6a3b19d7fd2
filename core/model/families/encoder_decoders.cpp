// Models that read a text whole and write another: T5 and its multilingual kin, BART, mBART and M2M-100 (NLLB-200 too). The encoder's layers are
// counted with the decoder's, as tokens of text meet both; only the decoder's attention to itself caches what grows.
// Source: transformers 5.24.
#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/all_more.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// Layers of both sides are numbered from 0.
void note_both_sides(ModuleTree& tree, const HeadAttention& a, const Quantity& written,
                     const Quantity& read) {
  tree.layers = std::max(written.value(), read.value());
  tree.attention.push_back(geometry(a, all_layers(written)));
}

struct T5Class {
  std::uint64_t vocabulary, hidden, wide, layers, heads;
  std::string_view activation;
  bool tied, bias_everywhere = false;
};

struct T5Side {
  std::string name;
  bool writes;
};

// Scores get a value for each distance and head: in the first block of a side, or in all.
std::vector<Module> t5_side(const Decoder& d, const Quantity& depth, const Quantity& distances, bool gated,
                            bool bias_everywhere, const T5Side& side) {
  HeadAttention a = d.attention();
  a.q = "q", a.k = "k", a.v = "v", a.o = "o", a.path = "layer.0.SelfAttention";
  HeadAttention across = a;
  across.path = "layer.1.EncDecAttention";
  const std::string last = side.writes ? "layer.2" : "layer.1", mlp = last + ".DenseReluDense";
  return group_layers(
      side.name + ".block.{layer}", depth,
      [&](std::uint64_t i) { return side.name + (i == 0 ? "'s first block" : "'s blocks"); },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "layer.0.layer_norm", d.hidden, Role::input_norm);
        if (side.writes) add_norm(layer, "layer.1.layer_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, last + ".layer_norm", d.hidden, Role::pre_feedforward_norm);
        Module attend = attention(a);
        if (i == 0 || bias_everywhere) {
          attend.tensors.push_back(parameter("relative_attention_bias.weight", {distances, d.heads},
                                             Role::position_embedding, Part::attention));
        }
        layer.children.push_back(std::move(attend));
        if (side.writes) layer.children.push_back(attention(across));
        layer.children.push_back(
            gated ? gated_mlp({d.hidden, d.intermediate, mlp, Part::dense_mlp, false, "wi_0", "wi_1", "wo"})
                  : plain_mlp({.hidden = d.hidden,
                               .intermediate = d.intermediate,
                               .path = mlp,
                               .bias = false,
                               .up = "wi",
                               .down = "wo"}));
      });
}

void describe_t5_of(ConfigReader& config, ModuleTree& tree, const T5Class& of) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("d_model|hidden_size", of.hidden);
  d.intermediate = config.size("d_ff", of.wide);
  const Quantity read = read_layers(config, "num_layers|num_hidden_layers", of.layers);
  d.layers = config.has("num_decoder_layers") ? read_layers(config, "num_decoder_layers", of.layers) : read;
  d.heads = d.kv_heads = config.size("num_heads|num_attention_heads", of.heads);
  d.head_dim = config.size("d_kv", 64);
  d.tied = config.tied_embeddings(of.tied);
  note_sizes(tree, d);
  const bool gated = config.text("feed_forward_proj", of.activation).starts_with("gated");
  const Quantity distances = config.size("relative_attention_num_buckets", 32);
  const auto add_side = [&](const Quantity& depth, const T5Side& side) {
    for (Module& group : t5_side(d, depth, distances, gated, of.bias_everywhere, side))
      tree.modules.push_back(std::move(group));
    tree.modules.push_back(norm(side.name + ".final_layer_norm", d.hidden, Role::final_norm));
  };
  tree.modules.push_back(embedding("shared", d.vocabulary, d.hidden));
  add_side(read, {"encoder", false});
  add_side(d.layers, {"decoder", true});
  tree.modules.push_back(output_head("lm_head", d.vocabulary, d.hidden, d.tied, "shared.weight"));
  note_both_sides(tree, d.attention(), d.layers, read);
}

void describe_t5(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {32128, 512, 2048, 6, 8, "relu", true});
}
void describe_mt5(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {250112, 512, 1024, 8, 6, "gated-gelu", false});
}
void describe_umt5(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {250112, 512, 1024, 8, 6, "gated-gelu", false, true});
}

}  // namespace

Module bart_layers(const Decoder& d, const std::string& path, const std::string& title, bool writes) {
  HeadAttention a = d.attention();
  a.o = "out_proj", a.qkv_bias = a.output_bias = true;
  HeadAttention across = a;
  across.path = "encoder_attn";
  Module layer = layers(path + ".layers.{layer}", title, all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  if (writes) add_norm(layer, "encoder_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "final_layer_norm", d.hidden, Role::pre_feedforward_norm, true);
  layer.children.push_back(attention(a));
  if (writes) layer.children.push_back(attention(across));
  layer.children.push_back(plain_mlp(
      {.hidden = d.hidden, .intermediate = d.intermediate, .path = "", .up = "fc1", .down = "fc2"}));
  return layer;
}

namespace {

// BART: norms behind blocks and behind the tables of places; mBART: norms before, and one more at each end; M2M-100: as mBART,
// with places that are sines.
struct BartClass {
  std::uint64_t vocabulary = 50265;
  bool norms_last = false, tables = true;
};

void describe_bart_of(ConfigReader& config, ModuleTree& tree, const BartClass& of) {
  constexpr std::uint64_t kOffset = 2;  // rows of the tables of places that no place uses
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("d_model|hidden_size", 1024);
  d.tied = config.tied_embeddings(true);
  std::vector<Module> both;
  Quantity read;
  HeadAttention a;
  for (const std::string side : {"encoder", "decoder"}) {
    d.intermediate = config.size(side + "_ffn_dim", 4096);
    d.layers = read_layers(config, side + "_layers", 12);
    d.heads = d.kv_heads = config.size(side + "_attention_heads", 16);
    d.head_dim = config.quotient(d.hidden, d.heads, "d_model / " + side + "_attention_heads");
    if (side == "encoder") read = d.layers;
    a = d.attention();
    if (of.tables) {
      const Quantity places = config.size("max_position_embeddings", 1024) + Quantity(kOffset);
      Module tables{"model." + side, side + "'s places", {}, {}, {}};
      tables.tensors.push_back(
          parameter("embed_positions.weight", {places, d.hidden}, Role::position_embedding, Part::embedding));
      add_norm(tables, "layernorm_embedding", d.hidden, Role::embedding_norm, true);
      both.push_back(std::move(tables));
    }
    both.push_back(bart_layers(d, "model." + side, side + "'s layers", side == "decoder"));
    if (of.norms_last)
      both.push_back(norm("model." + side + ".layer_norm", d.hidden, Role::final_norm, true));
  }
  note_sizes(tree, d);
  tree.modules.push_back(embedding("model.shared", d.vocabulary, d.hidden));
  for (Module& module : both) tree.modules.push_back(std::move(module));
  if (of.tables) {
    Module rest{"", "what is added to logits", {}, {}, {}};
    add_buffer(rest, "final_logits_bias", {1, d.vocabulary.value()});
    tree.modules.push_back(std::move(rest));
  }
  tree.modules.push_back(output_head("lm_head", d.vocabulary, d.hidden, d.tied, "model.shared.weight"));
  note_both_sides(tree, a, d.layers, read);
}

void describe_bart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree, {});
}
void describe_mbart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree, {.norms_last = true});
}
void describe_m2m(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree, {.vocabulary = 128112, .norms_last = true, .tables = false});
}

constexpr std::string_view kT5Architectures[] = {"T5ForConditionalGeneration"}, kT5Types[] = {"t5"},
                           kMt5Architectures[] = {"MT5ForConditionalGeneration"}, kMt5Types[] = {"mt5"},
                           kUmt5Architectures[] = {"UMT5ForConditionalGeneration"}, kUmt5Types[] = {"umt5"},
                           kBartArchitectures[] = {"BartForConditionalGeneration"}, kBartTypes[] = {"bart"},
                           kMbartArchitectures[] = {"MBartForConditionalGeneration"},
                           kMbartTypes[] = {"mbart"},
                           kM2mArchitectures[] = {"M2M100ForConditionalGeneration"},
                           kM2mTypes[] = {"m2m_100"};

}  // namespace

const Family kT5 = {"t5", "T5, Flan-T5", kT5Architectures, kT5Types, {}, describe_t5, nullptr};
const Family kMt5 = {"mt5", "mT5", kMt5Architectures, kMt5Types, {}, describe_mt5, nullptr};
const Family kUmt5 = {"umt5", "UMT5", kUmt5Architectures, kUmt5Types, {}, describe_umt5, nullptr};
const Family kBart = {"bart", "BART", kBartArchitectures, kBartTypes, {}, describe_bart, nullptr};
const Family kMbart = {"mbart", "mBART", kMbartArchitectures, kMbartTypes, {}, describe_mbart, nullptr};
const Family kM2m = {"m2m_100", "M2M-100, NLLB-200", kM2mArchitectures, kM2mTypes, {}, describe_m2m};

}  // namespace assay::families
