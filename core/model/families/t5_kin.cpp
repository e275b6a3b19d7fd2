// T5 and its kin, which read a text whole and write another: mT5 and UMT5, LongT5, whose encoder looks at windows, and Switch
// Transformers, with experts in some layers; Pop2Piano, which reads a song, and UDOP, which reads pages as words with places and
// as patches; and the encoder by itself, which stands in front of models that draw. The encoder's
// layers are counted with the decoder's, as tokens of text meet both; only the decoder's attention to itself caches what grows.
// Source: transformers 5.24 (Pop2Piano, UDOP: 5.23).
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_speakers.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct T5Class {
  std::uint64_t vocabulary, hidden, wide, layers, heads;
  std::string_view activation;
  bool tied, bias_everywhere = false;
  bool sparse = false;                 // Switch: its experts' layers, and another name of the MLP
  std::optional<bool> head_tied = {};  // whatever the config says
};

// Layers with experts of a side: every so many, the last of each group (Switch's step).
struct T5Experts {
  Experts experts;
  bool router_bias = false;
  std::uint64_t step = 0;  // 0: none
  bool in(std::uint64_t layer) const { return step > 0 && (step == 1 || layer % step == 1); }
};

struct T5Side {
  std::string name;
  bool writes;
  Quantity depth;
  std::string attends = "SelfAttention";
  std::optional<T5Experts> sparse = {};
};

struct T5Sizes {
  Decoder d;
  Quantity distances;
  bool gated, bias_everywhere;
};

Module t5_mlp(const T5Sizes& t, const std::string& path) {
  const Decoder& d = t.d;
  if (t.gated)
    return gated_mlp({d.hidden, d.intermediate, path, Part::dense_mlp, false, "wi_0", "wi_1", "wo"});
  return plain_mlp({.hidden = d.hidden,
                    .intermediate = d.intermediate,
                    .path = path,
                    .bias = false,
                    .up = "wi",
                    .down = "wo"});
}

Module t5_experts(const T5Sizes& t, const T5Experts& of, const std::string& path) {
  Module mlp{path, "experts", {}, {}, {}};
  add_router(mlp, "router.classifier", t.d.hidden, of.experts.count, of.router_bias);
  mlp.children = {routed_experts(
      {.hidden = t.d.hidden, .intermediate = t.d.intermediate, .gate = "", .up = "wi", .down = "wo"},
      of.experts.count, of.experts.active, "experts.expert_{expert}")};
  return mlp;
}

// Scores get a value for each distance and head: in the first block of a side, or in all. LongT5's global tokens have values and a
// norm of their own.
Module t5_attention(const T5Sizes& t, const T5Side& side, bool scored) {
  HeadAttention a = t.d.attention();
  a.q = "q", a.k = "k", a.v = "v", a.o = "o", a.path = "layer.0." + side.attends;
  Module attend = attention(a);
  const auto add = [&](const char* name) {
    attend.tensors.push_back(
        parameter(name, {t.distances, t.d.heads}, Role::position_embedding, Part::attention));
  };
  if (scored) add("relative_attention_bias.weight");
  if (side.attends.starts_with("TransientGlobal")) {
    if (scored) add("global_relative_attention_bias.weight");
    add_norm(attend, "global_input_layer_norm", t.d.hidden, Role::other);
  }
  return attend;
}

std::vector<Module> t5_side(const T5Sizes& t, const T5Side& side) {
  const Decoder& d = t.d;
  HeadAttention across = d.attention();
  across.q = "q", across.k = "k", across.v = "v", across.o = "o", across.path = "layer.1.EncDecAttention";
  const std::string last = side.writes ? "layer.2" : "layer.1";
  const std::string mlp = last + (side.sparse ? ".mlp" : ".DenseReluDense");
  const auto has_experts = [&](std::uint64_t i) { return side.sparse && side.sparse->in(i); };
  return group_layers(
      side.name + ".block.{layer}", side.depth,
      [&](std::uint64_t i) {
        return side.name + (i == 0 ? "'s first block" : "'s blocks") +
               (has_experts(i) ? " with experts" : "");
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "layer.0.layer_norm", d.hidden, Role::input_norm);
        if (side.writes) add_norm(layer, "layer.1.layer_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, last + ".layer_norm", d.hidden, Role::pre_feedforward_norm);
        layer.children.push_back(t5_attention(t, side, i == 0 || t.bias_everywhere));
        if (side.writes) layer.children.push_back(attention(across));
        layer.children.push_back(has_experts(i) ? t5_experts(t, *side.sparse, mlp) : t5_mlp(t, mlp));
      });
}

// num_layers / num_sparse_encoder_layers, rounded down; as many as layers, where none is sparse, which makes the second of two
// layers sparse again only in a side of one.
T5Experts read_switch(ConfigReader& config, ModuleTree& tree, const std::string& side,
                      const Quantity& depth) {
  T5Experts of;
  of.experts = read_fixed_experts(config, tree, 8, 1);
  of.router_bias = config.flag("router_bias", false);
  const std::uint64_t sparse = config.number("num_sparse_" + side + "_layers", 3);
  of.step = sparse > 0 ? depth.value() / sparse : depth.value();
  return of;
}

void add_side(ModuleTree& tree, const T5Sizes& t, const T5Side& side) {
  for (Module& group : t5_side(t, side)) tree.modules.push_back(std::move(group));
  tree.modules.push_back(norm(side.name + ".final_layer_norm", t.d.hidden, Role::final_norm));
}

// Early releases keep the table of words a second and third time, under each side.
void add_shared(ModuleTree& tree, const Decoder& d, bool writes) {
  Module shared = embedding("shared", d.vocabulary, d.hidden);
  tree.modules.push_back(std::move(shared));
  Module again{"", "the table of words, stored again", {}, {}, {}};
  for (const char* side : {"encoder", "decoder"}) {
    if (side[0] == 'd' && !writes) continue;
    TensorSpec table = parameter(std::string(side) + ".embed_tokens.weight", {d.vocabulary, d.hidden},
                                 Role::token_embedding, Part::embedding);
    table.storage = Storage::tied, table.same_as = "shared.weight";
    again.tensors.push_back(std::move(table));
  }
  tree.modules.push_back(std::move(again));
}

std::string long_attention(ConfigReader& config) {
  const std::string kind = config.text("encoder_attention_type", "local");
  config.require(kind == "local" || kind == "transient-global",
                 "encoder_attention_type is neither local nor transient-global");
  return kind == "local" ? "LocalSelfAttention" : "TransientGlobalSelfAttention";
}

// What classifies is put around the model, what finds answers beside it.
void put_under(ModuleTree& tree, const std::string& prefix) {
  for (Module& module : tree.modules) {
    if (!module.path.empty()) module.path.insert(0, prefix);
    for (TensorSpec& spec : module.tensors) {
      if (module.path.empty()) spec.name.insert(0, prefix);
      if (!spec.same_as.empty()) spec.same_as.insert(0, prefix);
    }
  }
}

void add_t5_head(ConfigReader& config, ModuleTree& tree, const Decoder& d, EncoderUse use) {
  Module head = head_module("classifier");
  const auto add = [&](const char* name, const Quantity& out) {
    add_linear(head, head_matrix(name, d.hidden, out));
  };
  if (use != EncoderUse::answers) put_under(tree, "transformer.");
  if (use == EncoderUse::sequences) add("classification_head.dense", d.hidden);
  add(use == EncoderUse::sequences ? "classification_head.out_proj"
      : use == EncoderUse::tokens  ? "classifier"
                                   : "qa_outputs",
      label_count(config));
  tree.modules.push_back(std::move(head));
}

void describe_t5_of(ConfigReader& config, ModuleTree& tree, const T5Class& of,
                    const std::string& reads = "SelfAttention") {
  const std::string& architecture = config.config().architecture();
  T5Sizes t;
  Decoder& d = t.d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("d_model|hidden_size", of.hidden);
  d.intermediate = config.size("d_ff", of.wide);
  const Quantity read = read_layers(config, "num_layers|num_hidden_layers", of.layers);
  const EncoderUse use = encoder_use(config);
  const bool classifies =
      use == EncoderUse::sequences || use == EncoderUse::tokens || use == EncoderUse::answers;
  const bool writes = !architecture.ends_with("EncoderModel") && use != EncoderUse::tokens;
  d.layers = config.has("num_decoder_layers") ? read_layers(config, "num_decoder_layers", of.layers) : read;
  if (of.sparse && !config.has("num_decoder_layers") && !config.is_null("num_decoder_layers"))
    d.layers = read_layers(config, "num_decoder_layers", of.layers);  // Switch's class has twelve
  if (!writes) d.layers = read;
  d.heads = d.kv_heads = config.size("num_heads|num_attention_heads", of.heads);
  d.head_dim = config.size("d_kv", 64);
  d.tied = of.head_tied.value_or(reads != "SelfAttention" || config.tied_embeddings(of.tied));
  note_sizes(tree, d);
  t.gated = !of.sparse && config.text("feed_forward_proj", of.activation).starts_with("gated");
  t.distances = config.size("relative_attention_num_buckets", 32);
  t.bias_everywhere = of.bias_everywhere;
  T5Side encoder{"encoder", false, read, reads}, decoder{"decoder", true, d.layers};
  if (of.sparse) encoder.sparse = read_switch(config, tree, "encoder", read);
  if (of.sparse) decoder.sparse = read_switch(config, tree, "decoder", d.layers);
  add_shared(tree, d, writes);
  add_side(tree, t, encoder);
  if (writes) add_side(tree, t, decoder);
  if (classifies) add_t5_head(config, tree, d, use);
  if (!writes) return;
  if (!classifies && !architecture.ends_with("Model"))
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
void describe_long_t5(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {32128, 512, 2048, 6, 8, "relu", true}, long_attention(config));
}
void describe_switch(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {32128, 768, 2048, 12, 12, "relu", true, false, true});
}

// A vector for each composer stands in front of the song.
void describe_pop2piano(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {2400, 512, 2048, 6, 8, "gated-gelu", true, false, false, false});
  Module composers{"mel_conditioner", "composers", {}, {}, {}};
  composers.tensors.push_back(parameter(
      "embedding.weight", {config.size("composer_vocab_size", 21), Quantity("d_model", tree.hidden_size)},
      Role::token_embedding, Part::embedding));
  tree.modules.insert(tree.modules.begin() + 1, std::move(composers));
}

// UDOP's kinds of distance, a table of scores each: along the text, across and down the page. The first is the one of T5, but
// where there is no head, which the class shares nothing without. Rows of the others are the class's.
void add_udop_distances(ConfigReader& config, ModuleTree& tree, const std::string& side) {
  std::size_t kinds = 3;
  if (config.has("relative_bias_args")) {
    config.require(config.is_list("relative_bias_args"), "relative_bias_args is no list");
    const std::vector<ModelConfig> listed = config.config().text_sections("relative_bias_args");
    kinds = listed.size();
    for (const ModelConfig& kind : listed)
      config.require(kind.text().size() == 1, "relative_bias_args says more than types: not described");
  }
  const std::string first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const bool shares = config.config().architecture() != "UdopModel";
  Module tables{side, side + "'s scores by places on the page", {}, {}, {}};
  for (std::size_t i = 0; i < kinds; ++i) {
    const Quantity rows = i == 0 && shares ? config.size("relative_attention_num_buckets", 32) : Quantity(32);
    TensorSpec table = parameter(
        "relative_bias.biases." + std::to_string(i) + ".relative_attention_bias.weight",
        {rows, config.size("num_heads|num_attention_heads", 16)}, Role::position_embedding, Part::attention);
    if (i == 0 && shares) table.storage = Storage::tied, table.same_as = first;
    tables.tensors.push_back(std::move(table));
  }
  if (side == "encoder") {
    const Quantity hidden("d_model", tree.hidden_size),
        places = config.size("max_2d_position_embeddings", 1024);
    for (const char* axis : {"x", "y"})
      tables.tensors.push_back(
          parameter(std::string("cell_2d_embedding.") + axis + "_position_embeddings.weight",
                    {places, hidden}, Role::position_embedding, Part::embedding));
  }
  tree.modules.push_back(std::move(tables));
}

// Patches enter by one convolution of both the whole and its encoder, and by the decoder's own, which meets none.
void add_udop_patches(ConfigReader& config, ModuleTree& tree, bool writes) {
  const Quantity hidden("d_model", tree.hidden_size), patch = config.size("patch_size", 16);
  const Quantity channels = config.size("num_channels", 3);
  Module tower{"", "patches", {}, {}, {}};
  const auto add = [&](const std::string& path) {
    Tower(tower, Part::vision)
        .tensor(path + ".weight", {hidden, channels, patch, patch})
        .tensor(path + ".bias", {hidden});
  };
  add("patch_embed.proj");
  if (writes) add("decoder.embed_patches.proj");
  for (const char* end : {".weight", ".bias"}) {
    TensorSpec again = tower.tensors[end[1] == 'w' ? 0 : 1];
    again.name = std::string("encoder.embed_patches.proj") + end;
    again.storage = Storage::tied, again.same_as = std::string("patch_embed.proj") + end;
    tower.tensors.push_back(std::move(again));
  }
  add_tower(tree, std::move(tower));
}

void describe_udop(ConfigReader& config, ModuleTree& tree) {
  describe_t5_of(config, tree, {33201, 1024, 4096, 24, 16, "relu", true, false, false, true});
  const bool writes = !config.config().architecture().ends_with("EncoderModel");
  add_udop_distances(config, tree, "encoder");
  if (writes) add_udop_distances(config, tree, "decoder");
  add_udop_patches(config, tree, writes);
}

constexpr std::string_view kT5Architectures[] = {"T5ForConditionalGeneration",
                                                 "T5WithLMHeadModel",
                                                 "T5Model",
                                                 "T5EncoderModel",
                                                 "T5ForSequenceClassification",
                                                 "T5ForTokenClassification",
                                                 "T5ForQuestionAnswering"},
                           kT5Types[] = {"t5"},
                           kMt5Architectures[] = {"MT5ForConditionalGeneration",
                                                  "MT5Model",
                                                  "MT5EncoderModel",
                                                  "MT5ForSequenceClassification",
                                                  "MT5ForTokenClassification",
                                                  "MT5ForQuestionAnswering"},
                           kMt5Types[] = {"mt5"},
                           kUmt5Architectures[] = {"UMT5ForConditionalGeneration",
                                                   "UMT5Model",
                                                   "UMT5EncoderModel",
                                                   "UMT5ForSequenceClassification",
                                                   "UMT5ForTokenClassification",
                                                   "UMT5ForQuestionAnswering"},
                           kUmt5Types[] = {"umt5"},
                           kLongT5Architectures[] = {"LongT5ForConditionalGeneration", "LongT5Model",
                                                     "LongT5EncoderModel"},
                           kLongT5Types[] = {"longt5"},
                           kSwitchArchitectures[] = {"SwitchTransformersForConditionalGeneration",
                                                     "SwitchTransformersModel",
                                                     "SwitchTransformersEncoderModel"},
                           kSwitchTypes[] = {"switch_transformers"},
                           kPop2pianoArchitectures[] = {"Pop2PianoForConditionalGeneration"},
                           kPop2pianoTypes[] = {"pop2piano"},
                           kUdopArchitectures[] = {"UdopForConditionalGeneration", "UdopModel",
                                                   "UdopEncoderModel"},
                           kUdopTypes[] = {"udop"};

}  // namespace

const Family kT5 = {"t5", "T5, Flan-T5", kT5Architectures, kT5Types, {}, describe_t5, nullptr};
const Family kMt5 = {"mt5", "mT5", kMt5Architectures, kMt5Types, {}, describe_mt5, nullptr};
const Family kUmt5 = {"umt5", "UMT5", kUmt5Architectures, kUmt5Types, {}, describe_umt5, nullptr};
const Family kLongT5 = {"longt5", "LongT5", kLongT5Architectures, kLongT5Types, {}, describe_long_t5};
const Family kSwitch = {"switch_transformers", "Switch Transformers", kSwitchArchitectures, kSwitchTypes, {},
                        describe_switch};
const Family kPop2piano = {"pop2piano",     "Pop2Piano", kPop2pianoArchitectures,
                           kPop2pianoTypes, {},          describe_pop2piano};
const Family kUdop = {"udop", "UDOP", kUdopArchitectures, kUdopTypes, {}, describe_udop};

}  // namespace assay::families
