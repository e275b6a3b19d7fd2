// Encoders of text of BERT's time whose layers are their own: MobileBERT with narrow layers between wide ones, SqueezeBERT with
// convolutions in groups, CANINE, which reads characters, FNet, which mixes tokens by a Fourier transform. Source: transformers 5.24.
#include <fmt/format.h>

#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_dense(Module& module, std::string name, const Quantity& in, const Quantity& out, Part part) {
  add_linear(
      module,
      {.name = std::move(name), .in = in, .out = out, .role = Role::other, .part = part, .bias = true});
}

void add_table(Module& tables, std::string name, const Quantity& rows, const Quantity& width) {
  tables.tensors.push_back(
      parameter(std::move(name), {rows, width}, Role::position_embedding, Part::embedding));
}

// MobileBERT.

struct Mobile {
  Decoder d;
  Quantity words, narrow;  // how wide the table is, and what attends
  bool bottleneck;
};

Mobile read_mobile(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin;
  kin.sizes = {
      .vocabulary = 30522, .hidden = 512, .intermediate = 512, .layers = 24, .heads = 4, .tied = true};
  Mobile m;
  m.d.vocabulary = config.size("vocab_size", kin.sizes.vocabulary);
  m.d.hidden = config.size("hidden_size", kin.sizes.hidden);
  m.d.intermediate = config.size("intermediate_size", kin.sizes.intermediate);
  m.d.layers = read_layers(config, "num_hidden_layers", kin.sizes.layers);
  m.d.heads = m.d.kv_heads = config.size("num_attention_heads", kin.sizes.heads);
  m.d.tied = config.tied_embeddings(true);
  m.words = config.size("embedding_size", 128);
  m.bottleneck = config.flag("use_bottleneck", true);
  m.narrow = m.bottleneck ? config.size("intra_bottleneck_size", 128) : m.d.hidden;
  m.d.head_dim = config.quotient(m.narrow, m.d.heads, "width / num_attention_heads");
  note_sizes(tree, m.d);
  return m;
}

void add_mobile_tables(ConfigReader& config, ModuleTree& tree, const Mobile& m, const std::string& prefix) {
  tree.modules.push_back(embedding(prefix + "embeddings.word_embeddings", m.d.vocabulary, m.words));
  Module tables{"", "positions and kinds of text", {}, {}, {}};
  const std::string before = prefix + "embeddings.";
  add_table(tables, before + "position_embeddings.weight", config.size("max_position_embeddings", 512),
            m.d.hidden);
  add_table(tables, before + "token_type_embeddings.weight", config.size("type_vocab_size", 2), m.d.hidden);
  const Quantity joined = config.flag("trigram_input", true) ? Quantity(3) * m.words : m.words;
  add_dense(tables, before + "embedding_transformation", joined, m.d.hidden, Part::embedding);
  add_norm(tables, before + "LayerNorm", m.d.hidden, Role::embedding_norm, true);
  tree.modules.push_back(std::move(tables));
}

void add_normed(Module& module, const std::string& path, const Quantity& in, const Quantity& out) {
  add_dense(module, path + ".dense", in, out, Part::dense_mlp);
  add_norm(module, path + ".LayerNorm", out, Role::post_feedforward_norm, true);
}

Module mobile_layer(ConfigReader& config, const Mobile& m, const std::string& prefix) {
  Module layer = layers(prefix + "encoder.layer.{layer}", "layers", all_layers(m.d.layers));
  Module attend{"attention", "attention", {}, {}, {}};
  const Quantity& of_values = config.flag("use_bottleneck_attention", false) ? m.narrow : m.d.hidden;
  add_dense(attend, "self.query", m.narrow, m.narrow, Part::attention);
  add_dense(attend, "self.key", m.narrow, m.narrow, Part::attention);
  add_dense(attend, "self.value", of_values, m.narrow, Part::attention);
  add_dense(attend, "output.dense", m.narrow, m.narrow, Part::attention);
  add_norm(attend, "output.LayerNorm", m.narrow, Role::post_attention_norm, true);
  Module mlps{"", "MLPs", {}, {}, {}};
  const std::uint64_t count = config.number("num_feedforward_networks", 4);
  config.require(count <= 1000, "num_feedforward_networks: no layer has so many");
  for (std::uint64_t i = 0; i + 1 < count; ++i) {
    const std::string before = fmt::format("ffn.{}.", i);
    add_dense(mlps, before + "intermediate.dense", m.narrow, m.d.intermediate, Part::dense_mlp);
    add_normed(mlps, before + "output", m.d.intermediate, m.narrow);
  }
  add_dense(mlps, "intermediate.dense", m.narrow, m.d.intermediate, Part::dense_mlp);
  add_normed(mlps, "output", m.d.intermediate, m.narrow);
  if (m.bottleneck) {
    add_normed(mlps, "output.bottleneck", m.narrow, m.d.hidden);
    add_normed(mlps, "bottleneck.input", m.d.hidden, m.narrow);
    if (config.flag("key_query_shared_bottleneck", true))
      add_normed(mlps, "bottleneck.attention", m.d.hidden, m.narrow);
  }
  layer.children = {std::move(attend), std::move(mlps)};
  return layer;
}

// The table of words is narrower than what it is compared with: the columns that lack stand beside it.
void add_mobile_guesses(ModuleTree& tree, const Mobile& m, ConfigReader& config) {
  config.require(m.words.value() < m.d.hidden.value(), "embedding_size is not less than hidden_size");
  Module head = head_module("head that guesses words");
  const std::string before = "cls.predictions.";
  add_linear(head, head_matrix(before + "transform.dense", m.d.hidden, m.d.hidden));
  add_norm(head, before + "transform.LayerNorm", m.d.hidden, Role::final_norm, true);
  const Quantity lack("hidden_size - embedding_size", m.d.hidden.value() - m.words.value());
  head.tensors.push_back(
      parameter(before + "dense.weight", {lack, m.d.vocabulary}, Role::output_head, Part::output));
  TensorSpec table =
      parameter(before + "decoder.weight", {m.d.vocabulary, m.words}, Role::output_head, Part::output);
  if (m.d.tied) table.storage = Storage::tied, table.same_as = "mobilebert.embeddings.word_embeddings.weight";
  TensorSpec bias = parameter(before + "bias", {m.d.vocabulary}, Role::output_head, Part::output);
  bias.bias = true;
  TensorSpec again = bias;
  again.name = before + "decoder.bias", again.storage = Storage::tied, again.same_as = bias.name;
  for (TensorSpec* spec : {&table, &bias, &again}) head.tensors.push_back(std::move(*spec));
  tree.modules.push_back(std::move(head));
}

void describe_mobilebert(ConfigReader& config, ModuleTree& tree) {
  const Mobile m = read_mobile(config, tree);
  const EncoderUse use = encoder_use(config);
  const std::string prefix = use == EncoderUse::alone ? "" : "mobilebert.";
  add_mobile_tables(config, tree, m, prefix);
  tree.modules.push_back(mobile_layer(config, m, prefix));
  EncoderHeads heads;
  if (!config.flag("classifier_activation", true)) heads.pooler = "";
  if (use == EncoderUse::alone) tree.aliases = {{"", "mobilebert."}};
  const bool both = use == EncoderUse::pretraining;
  if (both || use == EncoderUse::guessing) add_mobile_guesses(tree, m, config);
  if (use == EncoderUse::guessing) return;
  add_encoder_head(config, tree, both ? EncoderUse::follows : use, heads,
                   {.prefix = prefix,
                    .table = {},
                    .vocabulary = m.d.vocabulary,
                    .hidden = m.d.hidden,
                    .table_width = m.words});
}

// SqueezeBERT: each matrix is a convolution of one tap, in groups that see a part of the channels.
void add_grouped(ConfigReader& config, Module& module, const std::string& name, const Quantity& in,
                 const Quantity& out, const char* groups_key, std::uint64_t usual, Part part) {
  const Quantity groups = config.size(groups_key, usual);
  config.require_divides(groups, in), config.require_divides(groups, out);
  const Quantity each("in / groups", in.value() / groups.value());
  module.tensors.push_back(parameter(name + ".weight", {out, each, 1}, Role::other, part));
  module.tensors.push_back(parameter(name + ".bias", {out}, Role::other, part));
  module.tensors.back().bias = true;
}

void describe_squeezebert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "transformer."};
  kin.heads.pools_always = true;
  const Decoder d = read_encoder(config, tree, kin);
  config.require(config.size("embedding_size", 768).value() == d.hidden.value(),
                 "embedding_size is not hidden_size");
  const std::string prefix = encoder_use(config) == EncoderUse::alone ? "" : kin.prefix;
  add_encoder_tables(config, tree, d, kin, prefix);
  Module layer = layers(prefix + "encoder.layers.{layer}", "layers", all_layers(d.layers));
  Module attend{"", "attention", {}, {}, {}}, mlp{"", "MLP", {}, {}, {}};
  add_grouped(config, attend, "attention.query", d.hidden, d.hidden, "q_groups", 4, Part::attention);
  add_grouped(config, attend, "attention.key", d.hidden, d.hidden, "k_groups", 4, Part::attention);
  add_grouped(config, attend, "attention.value", d.hidden, d.hidden, "v_groups", 4, Part::attention);
  add_grouped(config, attend, "post_attention.conv1d", d.hidden, d.hidden, "post_attention_groups", 1,
              Part::attention);
  add_norm(attend, "post_attention.layernorm", d.hidden, Role::post_attention_norm, true);
  add_grouped(config, mlp, "intermediate.conv1d", d.hidden, d.intermediate, "intermediate_groups", 4,
              Part::dense_mlp);
  add_grouped(config, mlp, "output.conv1d", d.intermediate, d.hidden, "output_groups", 4, Part::dense_mlp);
  add_norm(mlp, "output.layernorm", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {std::move(attend), std::move(mlp)};
  tree.modules.push_back(std::move(layer));
  add_encoder_rest(config, tree, d, kin, prefix);
}

// CANINE: hashes of characters look up parts of their vectors; a layer over characters, layers over every few of them, and
// another over characters.
void describe_canine(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "canine."};
  kin.heads.pools_always = true;
  const Quantity buckets = config.size("num_hash_buckets", 16384);
  kin.sizes.vocabulary = buckets.value();
  const Decoder d = read_encoder(config, tree, kin);
  const bool alone = encoder_use(config) == EncoderUse::alone;
  const std::string prefix = alone ? "" : kin.prefix, before = prefix + "char_embeddings.";
  const std::uint64_t hashes = config.size("num_hash_functions", 8).value();
  config.require(hashes <= d.hidden.value(), "num_hash_functions exceeds hidden_size");
  const Quantity part("hidden_size / num_hash_functions", d.hidden.value() / hashes);
  Module tables{"", "tables of hashes, positions and kinds of text", {}, {}, {}};
  for (std::uint64_t i = 0; i < hashes; ++i)
    add_table(tables, fmt::format("{}HashBucketCodepointEmbedder_{}.weight", before, i), buckets, part);
  add_table(tables, before + "char_position_embeddings.weight", buckets, d.hidden);
  add_table(tables, before + "token_type_embeddings.weight", config.size("type_vocab_size", 16), d.hidden);
  add_norm(tables, before + "LayerNorm", d.hidden, Role::embedding_norm, true);
  const auto shallow = [&](const std::string& name) {
    Decoder one = d;
    one.layers = Quantity(1);
    EncoderKin of = kin;
    of.layer = name + ".layer.{layer}";
    Module layer = encoder_layer(one, of, prefix);
    layer.title = "layer over characters";
    return layer;
  };
  const auto convolve = [&](const std::string& name, const Quantity& in, const Quantity& taps) {
    Module module{prefix + name, "convolution of characters", {}, {}, {}};
    module.tensors = {parameter("conv.weight", {d.hidden, in, taps}, Role::convolution, Part::attention),
                      parameter("conv.bias", {d.hidden}, Role::convolution, Part::attention)};
    module.tensors.back().bias = true;
    add_norm(module, "LayerNorm", d.hidden, Role::post_attention_norm, true);
    return module;
  };
  tree.modules = {std::move(tables),
                  shallow("initial_char_encoder"),
                  convolve("chars_to_molecules", d.hidden, config.size("downsampling_rate", 4)),
                  encoder_layer(d, kin, prefix),
                  convolve("projection", Quantity(2) * d.hidden, config.size("upsampling_kernel_size", 4)),
                  shallow("final_char_encoder")};
  add_encoder_rest(config, tree, d, kin, prefix);
}

void describe_fnet(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "fnet.", .types = 4};
  kin.heads.pools_always = true;
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", 768);
  d.intermediate = config.size("intermediate_size", 3072);
  d.layers = read_layers(config, "num_hidden_layers", 12);
  d.heads = d.kv_heads = d.head_dim = 1;
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  const std::string prefix = encoder_use(config) == EncoderUse::alone ? "" : kin.prefix;
  add_encoder_tables(config, tree, d, kin, prefix);
  add_dense(tree.modules.back(), prefix + "embeddings.projection", d.hidden, d.hidden, Part::embedding);
  Module layer = layers(prefix + "encoder.layer.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "fourier.output.LayerNorm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "output.LayerNorm", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {plain_mlp({.hidden = d.hidden,
                               .intermediate = d.intermediate,
                               .path = "",
                               .up = "intermediate.dense",
                               .down = "output.dense"})};
  tree.modules.push_back(std::move(layer));
  add_encoder_rest(config, tree, d, kin, prefix);
}

constexpr std::string_view kMobileArchitectures[] = {"MobileBertModel",
                                                     "MobileBertForMaskedLM",
                                                     "MobileBertForPreTraining",
                                                     "MobileBertForSequenceClassification",
                                                     "MobileBertForTokenClassification",
                                                     "MobileBertForQuestionAnswering",
                                                     "MobileBertForMultipleChoice",
                                                     "MobileBertForNextSentencePrediction"},
                           kMobileTypes[] = {"mobilebert"},
                           kSqueezeArchitectures[] = {"SqueezeBertModel",
                                                      "SqueezeBertForMaskedLM",
                                                      "SqueezeBertForSequenceClassification",
                                                      "SqueezeBertForTokenClassification",
                                                      "SqueezeBertForQuestionAnswering",
                                                      "SqueezeBertForMultipleChoice"},
                           kSqueezeTypes[] = {"squeezebert"},
                           kCanineArchitectures[] = {"CanineModel", "CanineForSequenceClassification",
                                                     "CanineForTokenClassification",
                                                     "CanineForQuestionAnswering", "CanineForMultipleChoice"},
                           kCanineTypes[] = {"canine"},
                           kFnetArchitectures[] = {"FNetModel",
                                                   "FNetForMaskedLM",
                                                   "FNetForPreTraining",
                                                   "FNetForSequenceClassification",
                                                   "FNetForTokenClassification",
                                                   "FNetForQuestionAnswering",
                                                   "FNetForMultipleChoice",
                                                   "FNetForNextSentencePrediction"},
                           kFnetTypes[] = {"fnet"};

}  // namespace

const Family kMobilebert = {"mobilebert", "MobileBERT", kMobileArchitectures,
                            kMobileTypes, {},           describe_mobilebert};
const Family kSqueezebert = {"squeezebert",       "SqueezeBERT", kSqueezeArchitectures, kSqueezeTypes, {},
                             describe_squeezebert};
const Family kCanine = {"canine", "CANINE", kCanineArchitectures, kCanineTypes, {}, describe_canine};
const Family kFnet = {"fnet", "FNet", kFnetArchitectures, kFnetTypes, {}, describe_fnet};

}  // namespace assay::families
