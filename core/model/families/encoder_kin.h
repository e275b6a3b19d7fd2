// Encoders of text told by what differs from BERT: keys of the config, names of tensors, tables beside that of words, norms,
// heads. One EncoderKin a class; what does not fit one has a description of its own.
#pragma once

#include <optional>
#include <string>

#include "core/model/blocks.h"
#include "core/model/families/encoder_heads.h"

namespace assay::families {

// How BERT names what attends.
blocks::HeadAttention bert_attention();
// A matrix of all heads beside q, k and v, with which engines do not join it: of places, of tokens that see all.
void add_further_heads(Module& attend, const blocks::Decoder& d, std::string name, bool bias = true);

struct EncoderKin {
  blocks::DecoderDefaults sizes = {
      .vocabulary = 30522, .hidden = 768, .intermediate = 3072, .layers = 12, .heads = 12, .tied = true};
  std::string prefix;             // of the encoder within a model with a head
  std::string other_prefix = {};  // another that checkpoints of the encoder alone have
  std::string hidden_key = "hidden_size", wide_key = "intermediate_size", layers_key = "num_hidden_layers",
              heads_key = "num_attention_heads";

  // What enters. 0: no such table.
  std::uint64_t positions = 512, types = 2;
  std::uint64_t positions_in_front = 0;  // rows that the config does not count
  bool types_may_be_none = false;        // type_vocab_size 0 leaves the table out
  std::string norm_of_tables = "embeddings.LayerNorm";
  // Tables narrower than the layers: the width where its key is silent, and the matrix from there.
  std::optional<std::uint64_t> narrow = {};
  std::string narrow_key = "embedding_size";
  std::string widens = {};
  bool always_widens = false;

  std::string layer = "encoder.layer.{layer}";
  blocks::HeadAttention attend = bert_attention();
  std::string attention_norm = "attention.output.LayerNorm", mlp_norm = "output.LayerNorm";
  std::string last_norm = {};  // behind the layers
  std::string up = "intermediate.dense", down = "output.dense";
  std::string gate_up = {};  // one matrix of both, without a bias; replaces `up`

  EncoderHeads heads = {};
  bool guesses = true;  // false: what is released under the class that guesses words is the encoder alone
  // Whatever no other encoder has: into what enters, and into each layer.
  void (*more)(ConfigReader& config, const blocks::Decoder& d, Module& tables, Module& layer) = nullptr;
};

void describe_encoder(ConfigReader& config, ModuleTree& tree, const EncoderKin& kin);

// Its sizes, into the tree too; for those whose layers are told elsewhere.
blocks::Decoder read_encoder(ConfigReader& config, ModuleTree& tree, const EncoderKin& kin);

// A layer, for all of them, below `prefix`.
Module encoder_layer(const blocks::Decoder& d, const EncoderKin& kin, const std::string& prefix);

// How wide the tables are, and the tables with their norm and what widens them.
Quantity encoder_table_width(ConfigReader& config, const blocks::Decoder& d, const EncoderKin& kin);
void add_encoder_tables(ConfigReader& config, ModuleTree& tree, const blocks::Decoder& d,
                        const EncoderKin& kin, const std::string& prefix);
// Tables, what the encoder has beside, and layers.
void add_encoder_body(ConfigReader& config, ModuleTree& tree, const blocks::Decoder& d, const EncoderKin& kin,
                      const std::string& prefix);
// What stands behind the layers: the head that the architecture's name tells.
void add_encoder_rest(ConfigReader& config, ModuleTree& tree, const blocks::Decoder& d, const EncoderKin& kin,
                      const std::string& prefix);

}  // namespace assay::families
