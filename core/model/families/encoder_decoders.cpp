// Models that read a text whole and write another: T5 and its multilingual kin, BART and its kin (mBART, M2M-100 and NLLB-200, Marian
// with which OPUS-MT translates, Pegasus, Blenderbot, PLBART, MVP). The encoder's layers are
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

// BART: norms behind blocks and behind the tables of places; mBART: norms before, and one more at each end. Places may be sines,
// which some releases store.
struct BartClass {
  std::uint64_t vocabulary = 50265, hidden = 1024, wide = 4096, read = 12, written = 12, heads = 16;
  std::uint64_t places = 1024;
  bool norms_last = false;
  enum class Places { learnt, sines, none } tables = Places::learnt;
  std::uint64_t offset = 2;  // rows of the tables that no place uses
  bool normed_tables = true, logits_bias = true;
};

// What stands between the embedding and a side's layers.
std::optional<Module> bart_places(ConfigReader& config, const BartClass& of, const std::string& side,
                                  const Quantity& hidden) {
  Module tables{"model." + side, side + "'s places", {}, {}, {}};
  const Quantity places = config.size("max_position_embeddings", of.places) + Quantity(of.offset);
  if (of.tables == BartClass::Places::learnt) {
    tables.tensors.push_back(
        parameter("embed_positions.weight", {places, hidden}, Role::position_embedding, Part::embedding));
  } else if (of.tables == BartClass::Places::sines) {
    add_buffer(tables, "embed_positions.weight", {places.value(), hidden.value()});
  }
  if (of.normed_tables) add_norm(tables, "layernorm_embedding", hidden, Role::embedding_norm, true);
  return tables.tensors.empty() ? std::nullopt : std::optional(std::move(tables));
}

void describe_bart_of(ConfigReader& config, ModuleTree& tree, const BartClass& of) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("d_model|hidden_size", of.hidden);
  d.tied = config.tied_embeddings(true);
  std::vector<Module> both;
  Quantity read;
  HeadAttention a;
  for (const std::string side : {"encoder", "decoder"}) {
    d.intermediate = config.size(side + "_ffn_dim", of.wide);
    d.layers = read_layers(config, side + "_layers", side == "encoder" ? of.read : of.written);
    d.heads = d.kv_heads = config.size(side + "_attention_heads", of.heads);
    d.head_dim = config.quotient(d.hidden, d.heads, "d_model / " + side + "_attention_heads");
    if (side == "encoder") read = d.layers;
    a = d.attention();
    if (auto places = bart_places(config, of, side, d.hidden)) both.push_back(std::move(*places));
    both.push_back(bart_layers(d, "model." + side, side + "'s layers", side == "decoder"));
    if (of.norms_last)
      both.push_back(norm("model." + side + ".layer_norm", d.hidden, Role::final_norm, true));
  }
  note_sizes(tree, d);
  tree.modules.push_back(embedding("model.shared", d.vocabulary, d.hidden));
  for (Module& module : both) tree.modules.push_back(std::move(module));
  if (of.logits_bias) {
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
  describe_bart_of(config, tree,
                   {.vocabulary = 128112,
                    .norms_last = true,
                    .tables = BartClass::Places::none,
                    .normed_tables = false,
                    .logits_bias = false});
}
void describe_marian(ConfigReader& config, ModuleTree& tree) {
  const Quantity read = config.size("vocab_size", 58101);
  config.require(
      config.flag("share_encoder_decoder_embeddings", true) &&
          config.size("decoder_vocab_size", read).value() == read.value(),
      "share_encoder_decoder_embeddings is false, or decoder_vocab_size differs: tables for each side "
      "are not described");
  describe_bart_of(
      config, tree,
      {.vocabulary = 58101, .tables = BartClass::Places::sines, .offset = 0, .normed_tables = false});
}
void describe_pegasus(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(
      config, tree,
      {.norms_last = true, .tables = BartClass::Places::sines, .offset = 0, .normed_tables = false});
}
void describe_blenderbot(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 8008,
                    .hidden = 2560,
                    .wide = 10240,
                    .read = 2,
                    .written = 24,
                    .heads = 32,
                    .places = 128,
                    .norms_last = true,
                    .offset = 0,
                    .normed_tables = false});
}
void describe_blenderbot_small(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.hidden = 512, .wide = 2048, .read = 8, .written = 8, .places = 512, .offset = 0});
}
void describe_plbart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 50005, .hidden = 768, .wide = 3072, .read = 6, .written = 6, .heads = 12});
}
void describe_mvp(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("use_prompt", false), "use_prompt is true: MVP with prompts is not described");
  describe_bart_of(config, tree, {.vocabulary = 50267});
}

constexpr std::string_view kT5Architectures[] = {"T5ForConditionalGeneration"}, kT5Types[] = {"t5"},
                           kMt5Architectures[] = {"MT5ForConditionalGeneration"}, kMt5Types[] = {"mt5"},
                           kUmt5Architectures[] = {"UMT5ForConditionalGeneration"}, kUmt5Types[] = {"umt5"},
                           kBartArchitectures[] = {"BartForConditionalGeneration"}, kBartTypes[] = {"bart"},
                           kMbartArchitectures[] = {"MBartForConditionalGeneration"},
                           kMbartTypes[] = {"mbart"},
                           kM2mArchitectures[] = {"M2M100ForConditionalGeneration"},
                           kM2mTypes[] = {"m2m_100"}, kMarianArchitectures[] = {"MarianMTModel"},
                           kMarianTypes[] = {"marian"},
                           kPegasusArchitectures[] = {"PegasusForConditionalGeneration"},
                           kPegasusTypes[] = {"pegasus"},
                           kBlenderbotArchitectures[] = {"BlenderbotForConditionalGeneration"},
                           kBlenderbotTypes[] = {"blenderbot"},
                           kBlenderbotSmallArchitectures[] = {"BlenderbotSmallForConditionalGeneration"},
                           kBlenderbotSmallTypes[] = {"blenderbot-small"},
                           kPlbartArchitectures[] = {"PLBartForConditionalGeneration"},
                           kPlbartTypes[] = {"plbart"}, kMvpArchitectures[] = {"MvpForConditionalGeneration"},
                           kMvpTypes[] = {"mvp"};

}  // namespace

const Family kT5 = {"t5", "T5, Flan-T5", kT5Architectures, kT5Types, {}, describe_t5, nullptr};
const Family kMt5 = {"mt5", "mT5", kMt5Architectures, kMt5Types, {}, describe_mt5, nullptr};
const Family kUmt5 = {"umt5", "UMT5", kUmt5Architectures, kUmt5Types, {}, describe_umt5, nullptr};
const Family kBart = {"bart", "BART", kBartArchitectures, kBartTypes, {}, describe_bart, nullptr};
const Family kMbart = {"mbart", "mBART", kMbartArchitectures, kMbartTypes, {}, describe_mbart, nullptr};
const Family kM2m = {"m2m_100", "M2M-100, NLLB-200", kM2mArchitectures, kM2mTypes, {}, describe_m2m};
const Family kMarian = {"marian", "Marian, OPUS-MT", kMarianArchitectures, kMarianTypes, {}, describe_marian};
const Family kPegasus = {"pegasus", "Pegasus", kPegasusArchitectures, kPegasusTypes, {}, describe_pegasus};
const Family kBlenderbot = {"blenderbot",     "Blenderbot", kBlenderbotArchitectures,
                            kBlenderbotTypes, {},           describe_blenderbot};
const Family kBlenderbotSmall = {
    "blenderbot_small",       "Blenderbot (small)", kBlenderbotSmallArchitectures, kBlenderbotSmallTypes, {},
    describe_blenderbot_small};
const Family kPlbart = {"plbart", "PLBART", kPlbartArchitectures, kPlbartTypes, {}, describe_plbart};
const Family kMvp = {"mvp", "MVP", kMvpArchitectures, kMvpTypes, {}, describe_mvp};

}  // namespace assay::families
