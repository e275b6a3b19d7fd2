// Encoders of text of BERT's kind, which cache nothing: as the model alone (what embedding models publish), with the head that
// guesses hidden words, or with one that classifies (rerankers, recognizers of names, finders of answers). ESM-2 reads proteins
// in the same way. Source: transformers 5.24.
#include "core/model/families/all_2026.h"
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/flash_encoders.h"

namespace assay::families {
namespace {

using namespace blocks;

// Early BERTs had tables of distances, too; transformers dropped them.
void require_learnt_places(ConfigReader& config) {
  config.require(config.text("position_embedding_type", "absolute") == "absolute",
                 "position_embedding_type is not absolute");
}

// RoBERTa's heads: what classifies has a matrix of its own.
EncoderHeads roberta_heads() {
  EncoderHeads heads;
  heads.classes = EncoderHeads::Classes::within;
  heads.guessing = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"};
  return heads;
}

void describe_bert(ConfigReader& config, ModuleTree& tree) {
  require_learnt_places(config);
  describe_encoder(config, tree, {.prefix = "bert."});
}

void describe_roberta(ConfigReader& config, ModuleTree& tree) {
  if (is_flash_encoder(config.config())) return describe_flash_encoder(config, tree);
  require_learnt_places(config);
  EncoderKin kin{.prefix = "roberta.", .heads = roberta_heads()};
  kin.sizes.vocabulary = config.config().model_type() == "roberta" ? 50265 : 30522;
  describe_encoder(config, tree, kin);
}

void describe_data2vec(ConfigReader& config, ModuleTree& tree) {
  describe_encoder(config, tree, {.prefix = "data2vec_text.", .heads = roberta_heads()});
}

// MPNet: scores get a value for each distance and head, one table for all layers.
void describe_mpnet(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "mpnet.", .types = 0, .heads = roberta_heads()};
  kin.sizes.vocabulary = 30527;
  kin.attend.path = "attention.attn";
  kin.attend.q = "q", kin.attend.k = "k", kin.attend.v = "v", kin.attend.o = "o";
  kin.attention_norm = "attention.LayerNorm";
  kin.more = [](ConfigReader& config, const Decoder& d, Module& more, Module&) {
    more.tensors.push_back(parameter("encoder.relative_attention_bias.weight",
                                     {config.size("relative_attention_num_buckets", 32), d.heads},
                                     Role::position_embedding, Part::attention));
  };
  describe_encoder(config, tree, kin);
}

// BROS reads where words stand on a page: sines of boxes, through a matrix.
void describe_bros(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "bros."};
  kin.heads.pools_always = true;
  kin.more = [](ConfigReader& config, const Decoder& d, Module& more, Module&) {
    const Quantity sines = config.quotient(d.hidden, 4, "hidden_size / 4");
    more.tensors.push_back(
        parameter("bbox_embeddings.bbox_projection.weight",
                  {config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads"), sines},
                  Role::position_embedding, Part::embedding));
    const std::uint64_t frequencies = sines.value() / config.size("dim_bbox", 8).value() / 2;
    for (const std::string axis : {"x", "y"})
      add_buffer(more, "bbox_embeddings.bbox_sinusoid_emb." + axis + "_pos_emb.inv_freq", {frequencies});
  };
  describe_encoder(config, tree, kin);
}

void describe_distilbert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "distilbert.", .types = 0};
  kin.sizes.layers = 6;
  kin.hidden_key = "dim|hidden_size", kin.wide_key = "hidden_dim";
  kin.layers_key = "n_layers|num_hidden_layers", kin.heads_key = "n_heads|num_attention_heads";
  kin.layer = "transformer.layer.{layer}";
  kin.attend.q = "q_lin", kin.attend.k = "k_lin", kin.attend.v = "v_lin", kin.attend.o = "out_lin";
  kin.attention_norm = "sa_layer_norm", kin.mlp_norm = "output_layer_norm";
  kin.up = "ffn.lin1", kin.down = "ffn.lin2";
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::beside;
  kin.heads.beside = kin.heads.choices_beside = "pre_classifier";
  kin.heads.guessing = {"vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias"};
  describe_encoder(config, tree, kin);
}

// ELECTRA: what guesses words and what tells the replaced ones are two models of the same kind.
void describe_electra(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "electra.", .narrow = 128, .widens = "embeddings_project"};
  kin.sizes.hidden = 256, kin.sizes.intermediate = 1024, kin.sizes.heads = 4;
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::within;
  if (config.flag("summary_use_proj", true)) kin.heads.choices_beside = "sequence_summary.summary";
  kin.heads.guessing = {"generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
                        "generator_lm_head.bias"};
  kin.heads.discriminator = "discriminator_predictions";
  describe_encoder(config, tree, kin);
}

void describe_ernie_bert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "ernie."};
  kin.more = [](ConfigReader& config, const Decoder& d, Module& more, Module&) {
    if (!config.flag("use_task_id", false)) return;
    more.tensors.push_back(parameter("embeddings.task_type_embeddings.weight",
                                     {config.size("task_type_vocab_size", 3), d.hidden},
                                     Role::position_embedding, Part::embedding));
  };
  describe_encoder(config, tree, kin);
}

// LayoutLM: where a word stands on its page, and how high and wide it is there.
void describe_layoutlm(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "layoutlm."};
  kin.heads.pools_always = true;
  kin.more = [](ConfigReader& config, const Decoder& d, Module& more, Module&) {
    const Quantity places = config.size("max_2d_position_embeddings", 1024);
    for (const std::string side : {"x", "y", "h", "w"})
      more.tensors.push_back(parameter("embeddings." + side + "_position_embeddings.weight",
                                       {places, d.hidden}, Role::position_embedding, Part::embedding));
  };
  describe_encoder(config, tree, kin);
}

// Norms before attention and MLP, none of what enters, and one behind the layers.
void describe_megatron_bert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "bert.", .norm_of_tables = ""};
  kin.sizes = {
      .vocabulary = 29056, .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .tied = true};
  kin.attention_norm = "attention.ln", kin.mlp_norm = "ln", kin.last_norm = "encoder.ln";
  describe_encoder(config, tree, kin);
}

void describe_roberta_xl(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "roberta.", .positions = 514, .types = 1, .norm_of_tables = ""};
  kin.sizes = {
      .vocabulary = 250880, .hidden = 2560, .intermediate = 10240, .layers = 36, .heads = 32, .tied = true};
  kin.attention_norm = "attention.self_attn_layer_norm", kin.mlp_norm = "LayerNorm";
  kin.last_norm = "encoder.LayerNorm";
  kin.heads = roberta_heads();
  describe_encoder(config, tree, kin);
}

// Places by angles, whose sines are stored.
void describe_roformer(ConfigReader& config, ModuleTree& tree) {
  config.require(encoder_use(config) != EncoderUse::answers || label_count(config).value() == 2,
                 "id2label does not name two: the class takes two whatever it says");
  EncoderKin kin{.prefix = "roformer.", .positions = 0, .widens = "embeddings_project"};
  kin.sizes.vocabulary = 50000;
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::within;
  kin.more = [](ConfigReader& config, const Decoder& d, Module& more, Module&) {
    add_buffer(more, "encoder.embed_positions.weight",
               {config.size("max_position_embeddings", 1536).value(), d.head_dim.value()});
  };
  describe_encoder(config, tree, kin);
}

// Tokens that see all have queries, keys and values of their own.
void add_global_matrices(ConfigReader&, const Decoder& d, Module&, Module& layer) {
  for (const char* name : {"self.query_global", "self.key_global", "self.value_global"})
    add_further_heads(layer.children.front(), d, name);
}
void describe_longformer(ConfigReader& config, ModuleTree& tree) {
  describe_encoder(config, tree,
                   {.prefix = "longformer.", .heads = roberta_heads(), .more = add_global_matrices});
}

void describe_big_bird(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = encoder_use(config);
  config.require(use != EncoderUse::answers, "BigBird's head that finds answers is not described");
  EncoderKin kin{.prefix = "bert.", .positions = 4096};
  kin.sizes.vocabulary = 50358;
  kin.attend.qkv_bias = config.flag("use_bias", true);
  kin.heads.pooler = "pooler", kin.heads.pools_always = true;
  kin.heads.classes = EncoderHeads::Classes::within;
  describe_encoder(config, tree, kin);
}

// ESM-2: norms before, places by angles. Early releases hold a table of places that nothing reads.
void add_esm_parts(ConfigReader& config, const Decoder& d, Module& more, Module& layer) {
  const Quantity places = config.size("max_position_embeddings", 1026);
  const std::string table = "embeddings.position_embeddings.weight";
  if (config.text("position_embedding_type", "absolute") == "absolute") {
    more.tensors.push_back(parameter(table, {places, d.hidden}, Role::position_embedding, Part::embedding));
  } else {
    add_buffer(more, table, {places.value(), d.hidden.value()});
    add_buffer(layer, "attention.self.rotary_embeddings.inv_freq", {d.head_dim.value() / 2});
  }
  if (config.flag("emb_layer_norm_before", false))
    add_norm(more, "embeddings.layer_norm", d.hidden, Role::embedding_norm, true);
  add_linear(more, head_matrix("contact_head.regression", d.layers * d.heads, 1));
}
void describe_esm(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("is_folding_model", false),
                 "is_folding_model is true: what folds proteins is not described");
  EncoderKin kin{.prefix = "esm.", .positions = 0, .types = 0, .norm_of_tables = ""};
  config.size("vocab_size");
  kin.attention_norm = "attention.LayerNorm", kin.mlp_norm = "LayerNorm";
  kin.last_norm = "encoder.emb_layer_norm_after";
  kin.heads = roberta_heads();
  kin.more = add_esm_parts;
  describe_encoder(config, tree, kin);
}

constexpr std::string_view kBertArchitectures[] = {"BertModel",
                                                   "BertForMaskedLM",
                                                   "BertForSequenceClassification",
                                                   "BertForTokenClassification",
                                                   "BertForQuestionAnswering",
                                                   "BertForMultipleChoice",
                                                   "BertForNextSentencePrediction",
                                                   "BertForPreTraining",
                                                   "BertLMHeadModel",
                                                   "Contriever"},
                           kBertTypes[] = {"bert"};
constexpr std::string_view kRobertaArchitectures[] = {"RobertaModel",
                                                      "RobertaForMaskedLM",
                                                      "RobertaForSequenceClassification",
                                                      "RobertaForTokenClassification",
                                                      "RobertaForQuestionAnswering",
                                                      "RobertaForMultipleChoice",
                                                      "RobertaForCausalLM",
                                                      "XLMRobertaModel",
                                                      "XLMRobertaForMaskedLM",
                                                      "XLMRobertaForSequenceClassification",
                                                      "XLMRobertaForTokenClassification",
                                                      "XLMRobertaForQuestionAnswering",
                                                      "XLMRobertaForMultipleChoice",
                                                      "XLMRobertaForCausalLM",
                                                      "CamembertModel",
                                                      "CamembertForMaskedLM",
                                                      "CamembertForSequenceClassification",
                                                      "CamembertForTokenClassification",
                                                      "CamembertForQuestionAnswering",
                                                      "CamembertForMultipleChoice",
                                                      "CamembertForCausalLM"},
                           kRobertaTypes[] = {"roberta", "xlm-roberta", "camembert"};
constexpr std::string_view kBrosArchitectures[] = {"BrosModel", "BrosForTokenClassification"},
                           kBrosTypes[] = {"bros"};
constexpr std::string_view kMpnetArchitectures[] = {"MPNetModel",
                                                    "MPNetForMaskedLM",
                                                    "MPNetForSequenceClassification",
                                                    "MPNetForTokenClassification",
                                                    "MPNetForQuestionAnswering",
                                                    "MPNetForMultipleChoice"},
                           kMpnetTypes[] = {"mpnet"};
constexpr std::string_view kDistilbertArchitectures[] = {"DistilBertModel",
                                                         "DistilBertForMaskedLM",
                                                         "DistilBertForSequenceClassification",
                                                         "DistilBertForTokenClassification",
                                                         "DistilBertForQuestionAnswering",
                                                         "DistilBertForMultipleChoice"},
                           kDistilbertTypes[] = {"distilbert"};
constexpr std::string_view kElectraArchitectures[] = {"ElectraModel",
                                                      "ElectraForMaskedLM",
                                                      "ElectraForSequenceClassification",
                                                      "ElectraForTokenClassification",
                                                      "ElectraForQuestionAnswering",
                                                      "ElectraForMultipleChoice",
                                                      "ElectraForPreTraining",
                                                      "ElectraForCausalLM"},
                           kElectraTypes[] = {"electra"};
constexpr std::string_view kErnieBertArchitectures[] = {"ErnieModel",
                                                        "ErnieForMaskedLM",
                                                        "ErnieForSequenceClassification",
                                                        "ErnieForTokenClassification",
                                                        "ErnieForQuestionAnswering",
                                                        "ErnieForMultipleChoice",
                                                        "ErnieForNextSentencePrediction",
                                                        "ErnieForPreTraining",
                                                        "ErnieForCausalLM"},
                           kErnieBertTypes[] = {"ernie"};
constexpr std::string_view kLayoutlmArchitectures[] = {"LayoutLMModel", "LayoutLMForMaskedLM",
                                                       "LayoutLMForSequenceClassification",
                                                       "LayoutLMForTokenClassification",
                                                       "LayoutLMForQuestionAnswering"},
                           kLayoutlmTypes[] = {"layoutlm"};
constexpr std::string_view kMegatronBertArchitectures[] = {"MegatronBertModel",
                                                           "MegatronBertForMaskedLM",
                                                           "MegatronBertForSequenceClassification",
                                                           "MegatronBertForTokenClassification",
                                                           "MegatronBertForQuestionAnswering",
                                                           "MegatronBertForMultipleChoice",
                                                           "MegatronBertForNextSentencePrediction",
                                                           "MegatronBertForPreTraining",
                                                           "MegatronBertForCausalLM"},
                           kMegatronBertTypes[] = {"megatron-bert"};
constexpr std::string_view kRobertaXlArchitectures[] = {"XLMRobertaXLModel",
                                                        "XLMRobertaXLForMaskedLM",
                                                        "XLMRobertaXLForSequenceClassification",
                                                        "XLMRobertaXLForTokenClassification",
                                                        "XLMRobertaXLForQuestionAnswering",
                                                        "XLMRobertaXLForMultipleChoice",
                                                        "XLMRobertaXLForCausalLM"},
                           kRobertaXlTypes[] = {"xlm-roberta-xl"};
constexpr std::string_view kRoformerArchitectures[] = {"RoFormerModel",
                                                       "RoFormerForMaskedLM",
                                                       "RoFormerForSequenceClassification",
                                                       "RoFormerForTokenClassification",
                                                       "RoFormerForQuestionAnswering",
                                                       "RoFormerForMultipleChoice",
                                                       "RoFormerForCausalLM"},
                           kRoformerTypes[] = {"roformer"};
constexpr std::string_view kData2vecTextArchitectures[] = {"Data2VecTextModel",
                                                           "Data2VecTextForMaskedLM",
                                                           "Data2VecTextForSequenceClassification",
                                                           "Data2VecTextForTokenClassification",
                                                           "Data2VecTextForQuestionAnswering",
                                                           "Data2VecTextForMultipleChoice",
                                                           "Data2VecTextForCausalLM"},
                           kData2vecTextTypes[] = {"data2vec-text"};
constexpr std::string_view kLongformerArchitectures[] = {"LongformerModel",
                                                         "LongformerForMaskedLM",
                                                         "LongformerForSequenceClassification",
                                                         "LongformerForTokenClassification",
                                                         "LongformerForQuestionAnswering",
                                                         "LongformerForMultipleChoice"},
                           kLongformerTypes[] = {"longformer"};
constexpr std::string_view kBigBirdArchitectures[] = {"BigBirdModel",
                                                      "BigBirdForMaskedLM",
                                                      "BigBirdForCausalLM",
                                                      "BigBirdForPreTraining",
                                                      "BigBirdForSequenceClassification",
                                                      "BigBirdForTokenClassification",
                                                      "BigBirdForMultipleChoice"},
                           kBigBirdTypes[] = {"big_bird"};
constexpr std::string_view kEsmArchitectures[] = {"EsmModel", "EsmForMaskedLM",
                                                  "EsmForSequenceClassification",
                                                  "EsmForTokenClassification"},
                           kEsmTypes[] = {"esm"};

}  // namespace

const Family kBert = {"bert", "BERT", kBertArchitectures, kBertTypes, {}, describe_bert};
const Family kRoberta = {"roberta", "RoBERTa, XLM-RoBERTa", kRobertaArchitectures, kRobertaTypes,
                         {},        describe_roberta};
const Family kBros = {"bros", "BROS", kBrosArchitectures, kBrosTypes, {}, describe_bros};
const Family kMpnet = {"mpnet", "MPNet", kMpnetArchitectures, kMpnetTypes, {}, describe_mpnet};
const Family kDistilbert = {"distilbert",     "DistilBERT", kDistilbertArchitectures,
                            kDistilbertTypes, {},           describe_distilbert};
const Family kElectra = {"electra", "ELECTRA", kElectraArchitectures, kElectraTypes, {}, describe_electra};
const Family kErnie = {"ernie", "ERNIE", kErnieBertArchitectures, kErnieBertTypes, {}, describe_ernie_bert};
const Family kLayoutlm = {"layoutlm",     "LayoutLM", kLayoutlmArchitectures,
                          kLayoutlmTypes, {},         describe_layoutlm};
const Family kMegatronBert = {
    "megatron_bert",       "Megatron-BERT", kMegatronBertArchitectures, kMegatronBertTypes, {},
    describe_megatron_bert};
const Family kRobertaXl = {"xlm_roberta_xl",   "XLM-RoBERTa-XL", kRobertaXlArchitectures, kRobertaXlTypes, {},
                           describe_roberta_xl};
const Family kRoformer = {"roformer",     "RoFormer", kRoformerArchitectures,
                          kRoformerTypes, {},         describe_roformer};
const Family kData2vecText = {
    "data2vec_text",  "data2vec (text)", kData2vecTextArchitectures, kData2vecTextTypes, {},
    describe_data2vec};
const Family kLongformer = {"longformer",     "Longformer", kLongformerArchitectures,
                            kLongformerTypes, {},           describe_longformer};
const Family kBigBird = {"big_bird", "BigBird", kBigBirdArchitectures, kBigBirdTypes, {}, describe_big_bird};
const Family kEsm = {"esm", "ESM-2", kEsmArchitectures, kEsmTypes, {}, describe_esm};

}  // namespace assay::families
