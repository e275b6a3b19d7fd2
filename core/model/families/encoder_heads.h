// What stands behind an encoder of text: nothing (what embeds), the head that guesses hidden words, or one that classifies a
// text (rerankers), its tokens, where an answer stands, or which of several texts is the right one.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

enum class EncoderUse {
  alone,
  guessing,
  sequences,
  tokens,
  answers,
  choices,
  follows,     // whether one text follows the other
  pretraining  // what guesses, and what tells whether one text follows the other
};
// By the end of the architecture's name; a config that names none is that of the encoder alone.
EncoderUse encoder_use(const ConfigReader& config);

// As many as id2label names; where it is silent num_labels, or what the class has.
Quantity label_count(ConfigReader& config, std::uint64_t class_default = 2);

// A matrix behind the last layer: it is the output.
blocks::Linear head_matrix(std::string name, const Quantity& in, const Quantity& out);
// A module of such matrices, named whole.
Module head_module(std::string title);

// A matrix and a norm (dense "": neither), and the table of tokens once more (table "": under its own name alone), with a
// bias of its own.
struct GuessingHead {
  std::string dense = "cls.predictions.transform.dense", norm = "cls.predictions.transform.LayerNorm";
  std::string table = "cls.predictions.decoder", bias = "cls.predictions.bias";
};

struct EncoderHeads {
  std::string pooler = "pooler.dense";  // below the encoder's prefix; "": there is none
  bool pools_always = false;            // whatever the head takes
  bool pools_alone = true;              // where there is no head
  // What a text's class is made of: what the pooler gives; a matrix within the classifier (RoBERTa); a matrix beside it.
  enum class Classes { pooled, within, beside } classes = Classes::pooled;
  std::string beside = {};
  std::string choices_beside = {};  // likewise for choices; "": the pooler, or `beside`
  GuessingHead guessing = {};
  std::string order = "cls.seq_relationship";  // whether one text follows the other; "": no head tells
  bool order_has_labels = false;               // … in as many classes as labels, not two
  // What tells replaced tokens, in place of a head that guesses: two matrices (ELECTRA).
  std::string discriminator = {};
};

// Where the encoder's tensors and its table stand, and how wide its table is.
struct HeadPlace {
  std::string prefix, table;
  Quantity vocabulary, hidden, table_width;
  bool tied = true;
};
void add_encoder_head(ConfigReader& config, ModuleTree& tree, EncoderUse use, const EncoderHeads& heads,
                      const HeadPlace& at);

}  // namespace assay::families
