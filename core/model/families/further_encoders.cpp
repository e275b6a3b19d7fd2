// More encoders of text of BERT's kind: JinaBERT (embeddings v2 and rerankers v1), NeoBERT, RemBERT, RoBERTa with norms before
// blocks, BERT as a half of BERT2BERT, LayoutLMv3, which reads pages, and DPR's three.
// Sources: transformers 5.24; for JinaBERT Jina's own code and the loaders of TEI and llama.cpp, for NeoBERT its authors' code.
#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Two codes save JinaBERT under one class name. The later one, of embeddings v2 for code, norms queries and keys; which one
// a config is of only the repository tells that it has its code from.
bool norms_queries(const ConfigReader& config) {
  const ParsedJson& document = config.config().document();
  const auto codes = document.find("auto_map");
  return codes != document.end() && codes->dump().find("qk-post-norm") != std::string::npos;
}

// Distances are linear biases. What Jina releases under the class that guesses words is the encoder with its pooler: held to
// the 137,368,320 parameters of embeddings v2 base and the 32,690,688 of small.
void describe_jina_bert(ConfigReader& config, ModuleTree& tree) {
  config.require(config.text("position_embedding_type", "absolute") == "alibi",
                 "position_embedding_type is not alibi");
  config.require(config.text("feed_forward_type", "original").ends_with("glu"),
                 "feed_forward_type is not gated");
  EncoderKin kin{.prefix = "bert.", .positions = 0, .guesses = false};
  kin.mlp_norm = "mlp.layernorm", kin.gate_up = "mlp.gated_layers", kin.down = "mlp.wo";
  if (norms_queries(config)) {
    kin.mlp_norm = "layer_norm_2", kin.gate_up = "mlp.up_gated_layer", kin.down = "mlp.down_layer";
    kin.more = [](ConfigReader&, const Decoder& d, Module&, Module& layer) {
      add_norm(layer, "attention.self.layer_norm_q", d.hidden, Role::q_norm, true);
      add_norm(layer, "attention.self.layer_norm_k", d.hidden, Role::k_norm, true);
      add_norm(layer, "layer_norm_1", d.hidden, Role::post_attention_norm, true);
    };
  }
  describe_encoder(config, tree, kin);
}

// NeoBERT's MLP: two thirds of what the config says, in steps of 8.
Quantity neobert_width(const Decoder& d) {
  const std::uint64_t thirds = 2 * d.intermediate.value() / 3;
  return {"2/3 intermediate_size", std::max<std::uint64_t>((thirds + 7) / 8 * 8, 8)};
}

void describe_neobert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin;
  kin.sizes.layers = 28, kin.sizes.tied = false;
  const Decoder d = read_encoder(config, tree, kin);
  const bool guesses = config.config().architecture() == "NeoBERTLMHead";
  const std::string prefix = guesses ? "model." : "";
  HeadAttention a = d.attention();
  a.path = "", a.fused = "qkv", a.o = "wo", a.interleaved = true;
  Module layer = layers(prefix + "transformer_encoder.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "attention_norm", d.hidden, Role::input_norm);
  add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp({.hidden = d.hidden,
                                             .intermediate = neobert_width(d),
                                             .path = "ffn",
                                             .down = "w3",
                                             .fused = "w12"})};
  tree.modules = {embedding(prefix + "encoder", d.vocabulary, d.hidden), std::move(layer),
                  norm(prefix + "layer_norm", d.hidden, Role::final_norm)};
  if (guesses)
    tree.modules.push_back(output_head("decoder", d.vocabulary, d.hidden, false, "", true));
  else
    tree.aliases = {{"", "model."}};
}

// RemBERT: narrow tables in front, wide ones behind, which are never the same.
void describe_rembert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "rembert.",
                 .narrow = 256,
                 .narrow_key = "input_embedding_size",
                 .widens = "encoder.embedding_hidden_mapping_in",
                 .always_widens = true};
  kin.sizes = {
      .vocabulary = 250300, .hidden = 1152, .intermediate = 4608, .layers = 32, .heads = 18, .tied = false};
  const EncoderUse use = encoder_use(config);
  if (use != EncoderUse::guessing) return describe_encoder(config, tree, kin);
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_body(config, tree, d, kin, kin.prefix);
  EncoderHeads heads;
  heads.guessing = {"cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder",
                    "cls.predictions.decoder.bias"};
  add_encoder_head(config, tree, use, heads,
                   {.prefix = kin.prefix,
                    .table = {},
                    .vocabulary = d.vocabulary,
                    .hidden = d.hidden,
                    .table_width = config.size("output_embedding_size", 1664),
                    .tied = false});
}

// BERT as a half of BERT2BERT: no kinds of text, no pooler, and nothing between the layers and the table.
void describe_bert_generation(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "bert.", .types = 0};
  kin.sizes = {
      .vocabulary = 50358, .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .tied = true};
  kin.heads.pooler = "";
  kin.heads.guessing = {"", "", "lm_head.decoder", "lm_head.bias"};
  describe_encoder(config, tree, kin);
}

void describe_prelayernorm(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "roberta_prelayernorm."};
  kin.sizes.vocabulary = 50265;
  kin.attention_norm = "attention.LayerNorm", kin.mlp_norm = "intermediate.LayerNorm";
  kin.last_norm = "LayerNorm";
  kin.heads.classes = EncoderHeads::Classes::within;
  kin.heads.guessing = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"};
  describe_encoder(config, tree, kin);
}

// What LayoutLMv3 sees of a page, and where its words stand there; scores by distance, one table for all layers.
void add_page(ConfigReader& config, const Decoder& d, Module& into) {
  const auto table = [&](const std::string& name, const std::vector<Quantity>& shape) {
    into.tensors.push_back(parameter(name, shape, Role::position_embedding, Part::embedding));
  };
  const Quantity places = config.size("max_2d_position_embeddings", 1024);
  for (const char* side : {"x", "y", "h", "w"})
    table(std::string("embeddings.") + side + "_position_embeddings.weight",
          {places, config.size(*side < 'x' ? "shape_size" : "coordinate_size", 128)});
  if (config.flag("has_relative_attention_bias", true))
    table("encoder.rel_pos_bias.weight", {d.heads, config.size("rel_pos_bins", 32)});
  if (config.flag("has_spatial_attention_bias", true))
    for (const char* name : {"encoder.rel_pos_x_bias.weight", "encoder.rel_pos_y_bias.weight"})
      table(name, {d.heads, config.size("rel_2d_pos_bins", 64)});
  if (!config.flag("visual_embed", true)) return;
  const Quantity image = config.size("input_size", 224), patch = config.size("patch_size", 16);
  config.require(patch.value() <= image.value(), "patch_size exceeds input_size");
  const Quantity side("input_size / patch_size", image.value() / patch.value());
  Tower(into, Part::vision)
      .tensor("cls_token", {1, 1, d.hidden})
      .tensor("pos_embed", {1, side * side + Quantity(1), d.hidden})
      .tensor("patch_embed.proj.weight", {d.hidden, config.size("num_channels", 3), patch, patch})
      .tensor("patch_embed.proj.bias", {d.hidden})
      .norm("LayerNorm", d.hidden, true)
      .norm("norm", d.hidden, true);
}

// One matrix for fewer than ten labels of tokens; else, and for whole pages and for answers, two.
void add_page_head(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const EncoderUse use = encoder_use(config);
  if (use == EncoderUse::alone) return;
  const std::string name = use == EncoderUse::answers ? "qa_outputs" : "classifier";
  const Quantity labels = label_count(config);
  Module head = head_module("classifier");
  if (use == EncoderUse::tokens && labels.value() < 10) {
    add_linear(head, head_matrix(name, d.hidden, labels));
  } else {
    add_linear(head, head_matrix(name + ".dense", d.hidden, d.hidden));
    add_linear(head, head_matrix(name + ".out_proj", d.hidden, labels));
  }
  tree.modules.push_back(std::move(head));
}

void describe_layoutlmv3(ConfigReader& config, ModuleTree& tree) {
  config.require(config.flag("text_embed", true), "text_embed is false: it is not described");
  const EncoderKin kin{.prefix = "layoutlmv3."};
  EncoderKin of = kin;
  of.sizes.vocabulary = 50265;
  const Decoder d = read_encoder(config, tree, of);
  const std::string prefix = encoder_use(config) == EncoderUse::alone ? "" : kin.prefix;
  add_encoder_tables(config, tree, d, of, prefix);
  Module page{"", "the page", {}, {}, {}};
  add_page(config, d, page);
  for (TensorSpec& spec : page.tensors) spec.name = prefix + spec.name;
  tree.modules.push_back(std::move(page));
  tree.modules.push_back(encoder_layer(d, of, prefix));
  add_page_head(config, tree, d);
  if (prefix.empty()) tree.aliases = {{"", kin.prefix}};
}

// DPR: BERTs that embed questions and passages, and one that finds answers.
void describe_dpr(ConfigReader& config, ModuleTree& tree) {
  const std::string& architecture = config.config().architecture();
  const bool reads = architecture == "DPRReader";
  const std::string whole = reads                                               ? "span_predictor.encoder."
                            : architecture.find("Context") != std::string::npos ? "ctx_encoder."
                                                                                : "question_encoder.";
  const EncoderKin kin;
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_tables(config, tree, d, kin, whole + "bert_model.");
  tree.modules.push_back(encoder_layer(d, kin, whole + "bert_model."));
  const std::uint64_t common = config.number("projection_dim", 0);
  const Quantity width = common > 0 ? Quantity("projection_dim", common) : d.hidden;
  Module head = head_module("head");
  if (common > 0) add_linear(head, head_matrix(whole + "encode_proj", d.hidden, width));
  if (reads) {
    add_linear(head, head_matrix("span_predictor.qa_outputs", width, 2));
    add_linear(head, head_matrix("span_predictor.qa_classifier", width, 1));
  }
  if (!head.tensors.empty()) tree.modules.push_back(std::move(head));
}

constexpr std::string_view kJinaBertArchitectures[] = {"JinaBertModel", "JinaBertForMaskedLM",
                                                       "JinaBertForSequenceClassification"},
                           kJinaBertTypes[] = {"jina_bert"},
                           kNeobertArchitectures[] = {"NeoBERT", "NeoBERTLMHead"},
                           kNeobertTypes[] = {"neobert"},
                           kRembertArchitectures[] = {"RemBertModel",
                                                      "RemBertForMaskedLM",
                                                      "RemBertForCausalLM",
                                                      "RemBertForSequenceClassification",
                                                      "RemBertForTokenClassification",
                                                      "RemBertForQuestionAnswering",
                                                      "RemBertForMultipleChoice"},
                           kRembertTypes[] = {"rembert"},
                           kBertGenerationArchitectures[] = {"BertGenerationEncoder",
                                                             "BertGenerationDecoder"},
                           kBertGenerationTypes[] = {"bert-generation"},
                           kPrelayernormArchitectures[] = {"RobertaPreLayerNormModel",
                                                           "RobertaPreLayerNormForMaskedLM",
                                                           "RobertaPreLayerNormForCausalLM",
                                                           "RobertaPreLayerNormForSequenceClassification",
                                                           "RobertaPreLayerNormForTokenClassification",
                                                           "RobertaPreLayerNormForQuestionAnswering",
                                                           "RobertaPreLayerNormForMultipleChoice"},
                           kPrelayernormTypes[] = {"roberta-prelayernorm"},
                           kLayoutlmv3Architectures[] = {"LayoutLMv3Model",
                                                         "LayoutLMv3ForSequenceClassification",
                                                         "LayoutLMv3ForTokenClassification",
                                                         "LayoutLMv3ForQuestionAnswering"},
                           kLayoutlmv3Types[] = {"layoutlmv3"},
                           kDprArchitectures[] = {"DPRQuestionEncoder", "DPRContextEncoder", "DPRReader"};

}  // namespace

const Family kJinaBert = {"jina_bert", "JinaBERT (v2)",   kJinaBertArchitectures, kJinaBertTypes,
                          {},          describe_jina_bert};
const Family kNeobert = {"neobert", "NeoBERT", kNeobertArchitectures, kNeobertTypes, {}, describe_neobert};
const Family kRembert = {"rembert", "RemBERT", kRembertArchitectures, kRembertTypes, {}, describe_rembert};
const Family kBertGeneration = {
    "bert_generation",       "BERT for generation", kBertGenerationArchitectures, kBertGenerationTypes, {},
    describe_bert_generation};
const Family kPrelayernorm = {
    "roberta_prelayernorm", "RoBERTa (norms first)", kPrelayernormArchitectures, kPrelayernormTypes, {},
    describe_prelayernorm};
const Family kLayoutlmv3 = {"layoutlmv3",     "LayoutLMv3", kLayoutlmv3Architectures,
                            kLayoutlmv3Types, {},           describe_layoutlmv3};
const Family kDpr = {"dpr", "DPR", kDprArchitectures, {}, {}, describe_dpr};

}  // namespace assay::families
