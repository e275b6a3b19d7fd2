// Source: transformers 5.24, whose classes of one kind of encoder differ in names alone.
#include "core/model/families/encoder_heads.h"

#include <nlohmann/json.hpp>

namespace assay::families {

using namespace blocks;

EncoderUse encoder_use(const ConfigReader& config) {
  struct Ending {
    std::string_view text;
    EncoderUse use;
  };
  static constexpr Ending kEndings[] = {{"ForSequenceClassification", EncoderUse::sequences},
                                        {"ForTokenClassification", EncoderUse::tokens},
                                        {"ForQuestionAnswering", EncoderUse::answers},
                                        {"ForQuestionAnsweringSimple", EncoderUse::answers},
                                        {"ForMultipleChoice", EncoderUse::choices},
                                        {"ForNextSentencePrediction", EncoderUse::follows},
                                        {"ForPreTraining", EncoderUse::pretraining},
                                        {"LMHeadModel", EncoderUse::guessing},
                                        {"LM", EncoderUse::guessing},
                                        {"GenerationDecoder", EncoderUse::guessing}};
  const std::string& architecture = config.config().architecture();
  for (const Ending& ending : kEndings) {
    if (architecture.ends_with(ending.text)) return ending.use;
  }
  return EncoderUse::alone;
}

Quantity label_count(ConfigReader& config, std::uint64_t class_default) {
  const auto names = config.config().text().find("id2label");
  if (names != config.config().text().end() && names->is_object() && !names->empty())
    return {"id2label", names->size()};
  return config.size("num_labels", class_default);
}

Linear head_matrix(std::string name, const Quantity& in, const Quantity& out) {
  return {.name = std::move(name),
          .in = in,
          .out = out,
          .role = Role::output_head,
          .part = Part::output,
          .bias = true,
          .quantizable = false};
}

Module head_module(std::string title) {
  return {"", std::move(title), {}, {}, {}};
}

namespace {

// The matrix of scores and the bias beside it; some checkpoints keep the bias a second time under the matrix's name.
void add_table_again(Module& head, const GuessingHead& names, const HeadPlace& at) {
  TensorSpec bias = parameter(names.bias, {at.vocabulary}, Role::output_head, Part::output);
  bias.bias = true;
  head.tensors.push_back(bias);
  if (names.table.empty()) return;
  TensorSpec table =
      parameter(names.table + ".weight", {at.vocabulary, at.table_width}, Role::output_head, Part::output);
  if (at.tied) table.storage = Storage::tied, table.same_as = at.table;
  head.tensors.push_back(std::move(table));
  if (names.bias == names.table + ".bias") return;
  bias.name = names.table + ".bias";
  bias.storage = Storage::tied, bias.same_as = names.bias;
  head.tensors.push_back(std::move(bias));
}

void add_guessing(ModuleTree& tree, const GuessingHead& names, const HeadPlace& at) {
  Module head = head_module("head that guesses words");
  if (!names.dense.empty()) {
    add_linear(head, head_matrix(names.dense, at.hidden, at.table_width));
    add_norm(head, names.norm, at.table_width, Role::final_norm, true);
  }
  add_table_again(head, names, at);
  tree.modules.push_back(std::move(head));
}

void add_matrices(ModuleTree& tree, std::string title, const std::vector<Linear>& matrices) {
  Module head = head_module(std::move(title));
  for (const Linear& matrix : matrices) add_linear(head, matrix);
  if (!head.tensors.empty()) tree.modules.push_back(std::move(head));
}

bool pools(EncoderUse use, const EncoderHeads& heads) {
  if (heads.pooler.empty()) return false;
  if (heads.pools_always) return true;
  switch (use) {
    case EncoderUse::alone: return heads.pools_alone;
    case EncoderUse::sequences: return heads.classes == EncoderHeads::Classes::pooled;
    case EncoderUse::choices: return heads.choices_beside.empty();
    case EncoderUse::follows: return true;
    case EncoderUse::pretraining: return heads.discriminator.empty();
    default: return false;
  }
}

void add_classifier(ConfigReader& config, ModuleTree& tree, const EncoderHeads& heads, const HeadPlace& at) {
  const Quantity labels = label_count(config);
  if (heads.classes == EncoderHeads::Classes::within) {
    add_matrices(tree, "classifier",
                 {head_matrix("classifier.dense", at.hidden, at.hidden),
                  head_matrix("classifier.out_proj", at.hidden, labels)});
    return;
  }
  if (heads.classes == EncoderHeads::Classes::beside)
    add_matrices(tree, "pooler", {head_matrix(heads.beside, at.hidden, at.hidden)});
  add_matrices(tree, "classifier", {head_matrix("classifier", at.hidden, labels)});
}

}  // namespace

void add_encoder_head(ConfigReader& config, ModuleTree& tree, EncoderUse use, const EncoderHeads& heads,
                      const HeadPlace& at) {
  if (pools(use, heads))
    add_matrices(tree, "pooler", {head_matrix(at.prefix + heads.pooler, at.hidden, at.hidden)});
  const auto order = [&](const Quantity& classes) {
    add_matrices(tree, "order of two texts", {head_matrix(heads.order, at.hidden, classes)});
  };
  switch (use) {
    case EncoderUse::alone: return;
    case EncoderUse::guessing: return add_guessing(tree, heads.guessing, at);
    case EncoderUse::sequences: return add_classifier(config, tree, heads, at);
    case EncoderUse::tokens:
      return add_matrices(tree, "classifier", {head_matrix("classifier", at.hidden, label_count(config))});
    case EncoderUse::answers:
      return add_matrices(tree, "where answers stand",
                          {head_matrix("qa_outputs", at.hidden, label_count(config))});
    case EncoderUse::choices:
      if (!heads.choices_beside.empty())
        add_matrices(tree, "pooler", {head_matrix(heads.choices_beside, at.hidden, at.hidden)});
      return add_matrices(tree, "classifier", {head_matrix("classifier", at.hidden, 1)});
    case EncoderUse::follows: return order(2);
    case EncoderUse::pretraining:
      if (!heads.discriminator.empty()) {
        return add_matrices(tree, "what tells replaced tokens",
                            {head_matrix(heads.discriminator + ".dense", at.hidden, at.hidden),
                             head_matrix(heads.discriminator + ".dense_prediction", at.hidden, 1)});
      }
      add_guessing(tree, heads.guessing, at);
      if (heads.order.empty()) return;
      return order(heads.order_has_labels ? label_count(config) : Quantity(2));
  }
}

}  // namespace assay::families
