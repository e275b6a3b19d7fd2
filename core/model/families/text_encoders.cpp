// Encoders of text, which cache nothing: BERT, RoBERTa and XLM-RoBERTa, ModernBERT; as the model alone (what embedding models
// publish), with the head that guesses hidden words, or with one that classifies (rerankers). Source: transformers 5.24.
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

enum class EncoderUse { alone, guessing, classifying };
EncoderUse use_of(const ConfigReader& config) {
  const std::string& architecture = config.config().architecture();
  if (architecture.ends_with("ForSequenceClassification")) return EncoderUse::classifying;
  return architecture.ends_with("Model") ? EncoderUse::alone : EncoderUse::guessing;
}

// As many as id2label names; two where it is silent.
Quantity labels_of(ConfigReader& config) {
  const auto names = config.config().text().find("id2label");
  if (names != config.config().text().end() && names->is_object() && !names->empty())
    return {"id2label", names->size()};
  return config.size("num_labels", 2);
}

// What classifies or guesses, behind the last layer: it is the output.
Linear head_matrix(std::string name, const Quantity& in, const Quantity& out) {
  return {.name = std::move(name),
          .in = in,
          .out = out,
          .role = Role::output_head,
          .part = Part::output,
          .bias = true,
          .quantizable = false};
}
Module head_of(std::string path, std::string title) {
  return {std::move(path), std::move(title), {}, {}, {}};
}

struct BertKin {
  DecoderDefaults sizes;
  std::string prefix;  // of the encoder within a model with a head
  std::uint64_t positions, types;
  bool roberta;  // its heads
};

Module bert_layers(const Decoder& d, const std::string& prefix) {
  HeadAttention a = d.attention();
  a.path = "attention", a.qkv_bias = a.output_bias = true;
  a.q = "self.query", a.k = "self.key", a.v = "self.value", a.o = "output.dense";
  Module layer = layers(prefix + "encoder.layer.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "attention.output.LayerNorm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "output.LayerNorm", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {attention(a), plain_mlp({.hidden = d.hidden,
                                             .intermediate = d.intermediate,
                                             .path = "",
                                             .up = "intermediate.dense",
                                             .down = "output.dense"})};
  return layer;
}

void add_bert_tables(ConfigReader& config, ModuleTree& tree, const Decoder& d, const BertKin& kin,
                     const std::string& prefix) {
  tree.modules.push_back(embedding(prefix + "embeddings.word_embeddings", d.vocabulary, d.hidden));
  const Quantity positions = config.size("max_position_embeddings", kin.positions);
  Module tables{prefix + "embeddings", "positions and kinds of text", {}, {}, {}};
  tables.tensors = {
      parameter("position_embeddings.weight", {positions, d.hidden}, Role::position_embedding,
                Part::embedding),
      parameter("token_type_embeddings.weight", {config.size("type_vocab_size", kin.types), d.hidden},
                Role::position_embedding, Part::embedding)};
  add_norm(tables, "LayerNorm", d.hidden, Role::embedding_norm, true);
  add_buffer(tables, "position_ids", {1, positions.value()});
  tree.modules.push_back(std::move(tables));
}

// A matrix, a norm, and the table of tokens once more, with a bias of its own.
void add_guessing_head(ModuleTree& tree, const Decoder& d, const std::string& dense, const std::string& norm,
                       const std::string& bias, const std::string& table) {
  Module head = head_of("", "head that guesses words");
  add_linear(head, head_matrix(dense, d.hidden, d.hidden));
  add_norm(head, norm, d.hidden, Role::final_norm, true);
  TensorSpec own = parameter(bias, {d.vocabulary}, Role::output_head, Part::output);
  own.bias = true;
  head.tensors.push_back(std::move(own));
  TensorSpec again = parameter(bias.substr(0, bias.rfind('.')) + ".decoder.weight", {d.vocabulary, d.hidden},
                               Role::output_head, Part::output);
  again.storage = Storage::tied, again.same_as = table;
  head.tensors.push_back(std::move(again));
  tree.modules.push_back(std::move(head));
}

void add_bert_pooler(ModuleTree& tree, const Decoder& d, const std::string& prefix) {
  Module pooler = head_of(prefix + "pooler", "pooler");
  add_linear(pooler, head_matrix("dense", d.hidden, d.hidden));
  tree.modules.push_back(std::move(pooler));
}

void add_bert_classifier(ConfigReader& config, ModuleTree& tree, const Decoder& d, bool roberta) {
  Module head = head_of("classifier", "classifier");
  if (roberta) add_linear(head, head_matrix("dense", d.hidden, d.hidden));
  Linear last = head_matrix("out_proj", d.hidden, labels_of(config));
  if (!roberta) head.path = "", last.name = "classifier";
  add_linear(head, last);
  tree.modules.push_back(std::move(head));
}

void describe_bert_kin(ConfigReader& config, ModuleTree& tree, const BertKin& kin) {
  config.require(config.text("position_embedding_type", "absolute") == "absolute",
                 "position_embedding_type is not absolute");
  const EncoderUse use = use_of(config);
  const Decoder d = read_decoder(config, tree, kin.sizes);
  const std::string prefix = use == EncoderUse::alone ? "" : kin.prefix;
  add_bert_tables(config, tree, d, kin, prefix);
  tree.modules.push_back(bert_layers(d, prefix));
  if (use == EncoderUse::alone || (use == EncoderUse::classifying && !kin.roberta))
    add_bert_pooler(tree, d, prefix);
  const std::string table = prefix + "embeddings.word_embeddings.weight";
  if (use == EncoderUse::classifying)
    add_bert_classifier(config, tree, d, kin.roberta);
  else if (use == EncoderUse::guessing && kin.roberta)
    add_guessing_head(tree, d, "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", table);
  else if (use == EncoderUse::guessing)
    add_guessing_head(tree, d, "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                      "cls.predictions.bias", table);
  if (use == EncoderUse::alone) tree.aliases = {{"", kin.prefix}};
}

constexpr DecoderDefaults kBertSizes = {
    .vocabulary = 30522, .hidden = 768, .intermediate = 3072, .layers = 12, .heads = 12, .tied = true};

void describe_bert(ConfigReader& config, ModuleTree& tree) {
  describe_bert_kin(config, tree, {kBertSizes, "bert.", 512, 2, false});
}
void describe_roberta(ConfigReader& config, ModuleTree& tree) {
  DecoderDefaults sizes = kBertSizes;
  sizes.vocabulary = config.config().model_type() == "xlm-roberta" ? 30522 : 50265;
  describe_bert_kin(config, tree, {sizes, "roberta.", 512, 2, true});
}

// Norms before, no biases unless told, gate and up in one matrix, rotations; the first layer has no norm before attention.
void describe_modernbert(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = use_of(config);
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 50368, .hidden = 768, .intermediate = 1152, .layers = 22, .heads = 12, .tied = true});
  const bool norm_bias = config.flag("norm_bias", false);
  const std::string prefix = use == EncoderUse::alone ? "" : "model.";
  tree.modules.push_back(embedding(prefix + "embeddings.tok_embeddings", d.vocabulary, d.hidden));
  tree.modules.push_back(norm(prefix + "embeddings.norm", d.hidden, Role::embedding_norm, norm_bias));
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "Wqkv", a.o = "Wo";
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  GatedMlp mlp = d.mlp();
  mlp.fused = "Wi", mlp.down = "Wo", mlp.bias = config.flag("mlp_bias", false);
  for (Module& group : group_layers(
           prefix + "layers.{layer}", d.layers,
           [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
           [&](Module&layer, std::uint64_t i) {
             if (i > 0) add_norm(layer, "attn_norm", d.hidden, Role::input_norm, norm_bias);
             add_norm(layer, "mlp_norm", d.hidden, Role::pre_feedforward_norm, norm_bias);
             layer.children = {attention(a), gated_mlp(mlp)};
           }))
    tree.modules.push_back(std::move(group));
  tree.modules.push_back(norm(prefix + "final_norm", d.hidden, Role::final_norm, norm_bias));
  if (use == EncoderUse::alone) {
    tree.aliases = {{"", "model."}};
    return;
  }
  Module head = head_of("", "head");
  Linear dense = head_matrix("head.dense", d.hidden, d.hidden);
  dense.bias = config.flag("classifier_bias", false);
  add_linear(head, dense);
  add_norm(head, "head.norm", d.hidden, Role::final_norm, norm_bias);
  if (use == EncoderUse::classifying) {
    add_linear(head, head_matrix("classifier", d.hidden, labels_of(config)));
  } else {
    if (config.flag("decoder_bias", true)) {
      TensorSpec bias = parameter("decoder.bias", {d.vocabulary}, Role::output_head, Part::output);
      bias.bias = true;
      head.tensors.push_back(std::move(bias));
    }
    TensorSpec again = parameter("decoder.weight", {d.vocabulary, d.hidden}, Role::output_head, Part::output);
    again.storage = Storage::tied, again.same_as = prefix + "embeddings.tok_embeddings.weight";
    head.tensors.push_back(std::move(again));
  }
  tree.modules.push_back(std::move(head));
}

constexpr std::string_view kBertArchitectures[] = {"BertModel", "BertForMaskedLM",
                                                   "BertForSequenceClassification"},
                           kBertTypes[] = {"bert"};
constexpr std::string_view kRobertaArchitectures[] =
    {"RobertaModel",    "RobertaForMaskedLM",    "RobertaForSequenceClassification",
     "XLMRobertaModel", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification",
     "CamembertModel",  "CamembertForMaskedLM"},
                           kRobertaTypes[] = {"roberta", "xlm-roberta", "camembert"};
constexpr std::string_view kModernBertArchitectures[] = {"ModernBertModel", "ModernBertForMaskedLM",
                                                         "ModernBertForSequenceClassification"},
                           kModernBertTypes[] = {"modernbert"};

}  // namespace

const Family kBert = {"bert", "BERT", kBertArchitectures, kBertTypes, {}, describe_bert, nullptr};
const Family kRoberta = {
    "roberta", "RoBERTa, XLM-RoBERTa", kRobertaArchitectures, kRobertaTypes, {}, describe_roberta, nullptr};
const Family kModernBert = {"modernbert",        "ModernBERT", kModernBertArchitectures, kModernBertTypes, {},
                            describe_modernbert, nullptr};

}  // namespace assay::families
