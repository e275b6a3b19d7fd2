#include "core/model/families/encoder_kin.h"

namespace assay::families {

using namespace blocks;

HeadAttention bert_attention() {
  HeadAttention a;
  a.path = "attention", a.qkv_bias = a.output_bias = true;
  a.q = "self.query", a.k = "self.key", a.v = "self.value", a.o = "output.dense";
  return a;
}

Decoder read_encoder(ConfigReader& config, ModuleTree& tree, const EncoderKin& kin) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", kin.sizes.vocabulary);
  d.hidden = config.size(kin.hidden_key, kin.sizes.hidden);
  d.intermediate = config.size(kin.wide_key, kin.sizes.intermediate);
  d.layers = read_layers(config, kin.layers_key, kin.sizes.layers);
  d.heads = d.kv_heads = config.size(kin.heads_key, kin.sizes.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.tied = config.tied_embeddings(kin.sizes.tied);
  note_sizes(tree, d);
  return d;
}

Quantity encoder_table_width(ConfigReader& config, const Decoder& d, const EncoderKin& kin) {
  if (kin.widens.empty()) return d.hidden;
  return kin.narrow ? config.size(kin.narrow_key, *kin.narrow) : config.size(kin.narrow_key, d.hidden);
}

namespace {

// The tables beside that of words, the norm of what enters, and the matrix that widens it.
Module tables_beside(ConfigReader& config, const Decoder& d, const EncoderKin& kin, const Quantity& width) {
  Module tables{"", "positions and kinds of text", {}, {}, {}};
  const auto add = [&](const char* name, const Quantity& rows) {
    tables.tensors.push_back(parameter(std::string("embeddings.") + name, {rows, width},
                                       Role::position_embedding, Part::embedding));
  };
  if (kin.positions > 0) {
    Quantity positions = config.size("max_position_embeddings", kin.positions);
    if (kin.positions_in_front > 0) positions = positions + Quantity(kin.positions_in_front);
    add("position_embeddings.weight", positions);
    add_buffer(tables, "embeddings.position_ids", {1, positions.value()});
  }
  if (kin.types_may_be_none) {
    const std::uint64_t types = config.number("type_vocab_size", kin.types);
    if (types > 0) add("token_type_embeddings.weight", {"type_vocab_size", types});
  } else if (kin.types > 0) {
    add("token_type_embeddings.weight", config.size("type_vocab_size", kin.types));
  }
  if (!kin.norm_of_tables.empty()) add_norm(tables, kin.norm_of_tables, width, Role::embedding_norm, true);
  if (kin.always_widens || width.value() != d.hidden.value()) {
    add_linear(tables, {.name = kin.widens,
                        .in = width,
                        .out = d.hidden,
                        .role = Role::other,
                        .part = Part::embedding,
                        .bias = true,
                        .quantizable = false});
  }
  return tables;
}

}  // namespace

Module encoder_layer(const Decoder& d, const EncoderKin& kin, const std::string& prefix) {
  HeadAttention a = kin.attend;
  a.hidden = d.hidden, a.heads = d.heads, a.kv_heads = d.kv_heads, a.head_dim = d.head_dim;
  Module layer = layers(prefix + kin.layer, "layers", all_layers(d.layers));
  add_norm(layer, kin.attention_norm, d.hidden, Role::post_attention_norm, true);
  add_norm(layer, kin.mlp_norm, d.hidden, Role::post_feedforward_norm, true);
  Module mlp = kin.gate_up.empty() ? plain_mlp({.hidden = d.hidden,
                                                .intermediate = d.intermediate,
                                                .path = "",
                                                .up = kin.up,
                                                .down = kin.down})
                                   : gated_mlp({.hidden = d.hidden,
                                                .intermediate = d.intermediate,
                                                .path = "",
                                                .bias = true,
                                                .down = kin.down,
                                                .fused = kin.gate_up});
  std::erase_if(mlp.tensors,
                [](const TensorSpec& spec) { return spec.bias && spec.role == Role::mlp_gate_up; });
  layer.children = {attention(a), std::move(mlp)};
  return layer;
}

namespace {

// Attention to what another model has read, as decoders of BERT's kind name it.
void add_attention_across(Module& layer, const Decoder& d, const EncoderKin& kin) {
  constexpr std::string_view kOwn = "attention";
  HeadAttention a = kin.attend;
  a.hidden = d.hidden, a.heads = d.heads, a.kv_heads = d.kv_heads, a.head_dim = d.head_dim;
  a.path = "crossattention";
  if (kin.attention_norm.starts_with(kOwn))
    add_norm(layer, a.path + kin.attention_norm.substr(kOwn.size()), d.hidden, Role::post_attention_norm,
             true);
  layer.children.push_back(attention(a));
}

bool holds_flag(ConfigReader& config, const char* key) {
  return config.has(key) && config.flag(key, false);
}

EncoderUse use_of(const ConfigReader& config, const EncoderKin& kin) {
  const EncoderUse use = encoder_use(config);
  return use == EncoderUse::guessing && !kin.guesses ? EncoderUse::alone : use;
}

// An encoder alone is saved under no prefix, or as a part of a model with a head.
void note_prefixes(ModuleTree& tree, const EncoderKin& kin, EncoderUse use) {
  if (use != EncoderUse::alone) return;
  tree.aliases = {{"", kin.prefix}};
  if (!kin.other_prefix.empty()) tree.aliases.push_back({"", kin.other_prefix});
}

}  // namespace

void add_encoder_tables(ConfigReader& config, ModuleTree& tree, const Decoder& d, const EncoderKin& kin,
                        const std::string& prefix) {
  const Quantity width = encoder_table_width(config, d, kin);
  tree.modules.push_back(embedding(prefix + "embeddings.word_embeddings", d.vocabulary, width));
  Module tables = tables_beside(config, d, kin, width);
  for (TensorSpec& spec : tables.tensors) spec.name = prefix + spec.name;
  if (!tables.tensors.empty()) tree.modules.push_back(std::move(tables));
}

void add_encoder_rest(ConfigReader& config, ModuleTree& tree, const Decoder& d, const EncoderKin& kin,
                      const std::string& prefix) {
  const EncoderUse use = use_of(config, kin);
  if (!kin.last_norm.empty())
    tree.modules.push_back(norm(prefix + kin.last_norm, d.hidden, Role::final_norm, true));
  add_encoder_head(config, tree, use, kin.heads,
                   {.prefix = prefix,
                    .table = prefix + "embeddings.word_embeddings.weight",
                    .vocabulary = d.vocabulary,
                    .hidden = d.hidden,
                    .table_width = encoder_table_width(config, d, kin),
                    .tied = d.tied});
  note_prefixes(tree, kin, use);
}

void add_further_heads(Module& attend, const Decoder& d, std::string name, bool bias) {
  add_linear(attend, {.name = std::move(name),
                      .in = d.hidden,
                      .out = d.hidden,
                      .role = Role::other,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = d.heads.value(),
                      .bias = bias});
}

void add_encoder_body(ConfigReader& config, ModuleTree& tree, const Decoder& d, const EncoderKin& kin,
                      const std::string& prefix) {
  add_encoder_tables(config, tree, d, kin, prefix);
  Module layer = encoder_layer(d, kin, prefix);
  if (holds_flag(config, "add_cross_attention")) add_attention_across(layer, d, kin);
  if (kin.more != nullptr) {
    Module more{"", "what this encoder has beside", {}, {}, {}};
    kin.more(config, d, more, layer);
    for (TensorSpec& spec : more.tensors) spec.name = prefix + spec.name;
    if (!more.tensors.empty()) tree.modules.push_back(std::move(more));
  }
  tree.modules.push_back(std::move(layer));
}

void describe_encoder(ConfigReader& config, ModuleTree& tree, const EncoderKin& kin) {
  const Decoder d = read_encoder(config, tree, kin);
  const std::string prefix = use_of(config, kin) == EncoderUse::alone ? "" : kin.prefix;
  add_encoder_body(config, tree, d, kin, prefix);
  add_encoder_rest(config, tree, d, kin, prefix);
  if (holds_flag(config, "is_decoder"))
    tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

}  // namespace assay::families
