// XLNet (arXiv 1906.08237), XLM and FlauBERT: encoders of text with names of their own. XLNet attends to places by a matrix and
// biases of its own in each layer, whose matrices keep heads apart. Source: transformers 5.24.
#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_heads.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::string_view kBodyPrefix = "transformer.";

// By the whole name: what finds answers by beams is not what finds them by two scores.
enum class ScoreUse { alone, guessing, sequences, tokens, answers, beams, choices };
ScoreUse score_use(const ConfigReader& config) {
  const std::string& architecture = config.config().architecture();
  if (architecture.ends_with("ForQuestionAnswering")) return ScoreUse::beams;
  switch (encoder_use(config)) {
    case EncoderUse::guessing: return ScoreUse::guessing;
    case EncoderUse::sequences: return ScoreUse::sequences;
    case EncoderUse::tokens: return ScoreUse::tokens;
    case EncoderUse::answers: return ScoreUse::answers;
    case EncoderUse::choices: return ScoreUse::choices;
    default: return architecture.ends_with("WithLMHeadModel") ? ScoreUse::guessing : ScoreUse::alone;
  }
}

Decoder read_scored(ConfigReader& config, ModuleTree& tree, std::uint64_t vocabulary, std::uint64_t hidden,
                    std::uint64_t layers) {
  Decoder d;
  d.vocabulary = config.size("vocab_size|n_words|n_token", vocabulary);
  d.hidden = config.size("d_model|emb_dim|hidden_size", hidden);
  d.layers = read_layers(config, "n_layer|n_layers|num_hidden_layers", layers);
  d.heads = d.kv_heads = config.size("n_head|n_heads|num_attention_heads", 16);
  d.head_dim = config.quotient(d.hidden, d.heads, "width of a head");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

void add_answers_by_beams(Module& head, const std::string& before, const Quantity& hidden) {
  const Quantity pair = Quantity(2) * hidden;
  add_linear(head, head_matrix(before + "start_logits.dense", hidden, 1));
  add_linear(head, head_matrix(before + "end_logits.dense_0", pair, hidden));
  add_norm(head, before + "end_logits.LayerNorm", hidden, Role::final_norm, true);
  add_linear(head, head_matrix(before + "end_logits.dense_1", hidden, 1));
  add_linear(head, head_matrix(before + "answer_class.dense_0", pair, hidden));
  Linear last = head_matrix(before + "answer_class.dense_1", hidden, 1);
  last.bias = false;
  add_linear(head, last);
}

// The table of words once more, with a bias.
void add_scores_of_words(Module& head, const Decoder& d, const std::string& name, const std::string& table) {
  add_linear(head, head_matrix(name, d.hidden, d.vocabulary));
  if (!d.tied) return;
  TensorSpec& matrix = head.tensors[head.tensors.size() - 2];
  matrix.storage = Storage::tied, matrix.same_as = table;
}

// XLNet.

Module xlnet_layer(ConfigReader& config, const Decoder& d, const std::string& prefix) {
  Module layer = layers(prefix + "layer.{layer}", "layers", all_layers(d.layers));
  Module attend{"rel_attn", "attention", {}, {}, {}};
  const auto add = [&](const char* name, const std::vector<Quantity>& shape) {
    attend.tensors.push_back(parameter(name, shape, Role::other, Part::attention));
  };
  for (const char* name : {"q", "k", "v", "o", "r"}) add(name, {d.hidden, d.heads, d.head_dim});
  for (const char* name : {"r_r_bias", "r_s_bias", "r_w_bias"}) add(name, {d.heads, d.head_dim});
  add("seg_embed", {2, d.heads, d.head_dim});
  add_norm(attend, "layer_norm", d.hidden, Role::post_attention_norm, true);
  Module mlp = plain_mlp({.hidden = d.hidden,
                          .intermediate = config.size("d_inner", 4096),
                          .path = "ff",
                          .up = "layer_1",
                          .down = "layer_2"});
  add_norm(mlp, "layer_norm", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {std::move(attend), std::move(mlp)};
  return layer;
}

void add_xlnet_head(ConfigReader& config, ModuleTree& tree, const Decoder& d, ScoreUse use) {
  Module head = head_module("head");
  const auto add = [&](const char* name, const Quantity& out) {
    add_linear(head, head_matrix(name, d.hidden, out));
  };
  switch (use) {
    case ScoreUse::alone: return;
    case ScoreUse::guessing:
      add_scores_of_words(head, d, "lm_loss", "transformer.word_embedding.weight");
      break;
    case ScoreUse::sequences:
    case ScoreUse::choices:
      if (config.flag("summary_use_proj", true)) add("sequence_summary.summary", d.hidden);
      add("logits_proj", use == ScoreUse::choices ? Quantity(1) : label_count(config));
      break;
    case ScoreUse::tokens: add("classifier", label_count(config)); break;
    case ScoreUse::answers: add("qa_outputs", label_count(config)); break;
    case ScoreUse::beams: add_answers_by_beams(head, "", d.hidden); break;
  }
  tree.modules.push_back(std::move(head));
}

void describe_xlnet(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_scored(config, tree, 32000, 1024, 24);
  const ScoreUse use = score_use(config);
  const std::string prefix(use == ScoreUse::alone ? std::string_view() : kBodyPrefix);
  tree.modules = {embedding(prefix + "word_embedding", d.vocabulary, d.hidden)};
  Module mask{"", "what stands for a hidden word", {}, {}, {}};
  mask.tensors.push_back(
      parameter(prefix + "mask_emb", {1, 1, d.hidden}, Role::position_embedding, Part::embedding));
  tree.modules.push_back(std::move(mask));
  tree.modules.push_back(xlnet_layer(config, d, prefix));
  add_xlnet_head(config, tree, d, use);
  if (use == ScoreUse::alone) tree.aliases = {{"", std::string(kBodyPrefix)}};
}

// XLM, FlauBERT: what layers are made of stands in four lists.

void add_norm_of_layers(ModuleTree& tree, const Decoder& d, const std::string& path, Role role) {
  Module norms = layers(path + ".{layer}", "norms", all_layers(d.layers));
  for (const char* name : {"weight", "bias"}) {
    norms.tensors.push_back(parameter(name, {d.hidden}, role, Part::norm));
    norms.tensors.back().bias = norms.tensors.size() == 2;
  }
  tree.modules.push_back(std::move(norms));
}

void add_xlm_layers(ModuleTree& tree, const Decoder& d, const std::string& prefix) {
  HeadAttention a = d.attention();
  a.path = "", a.qkv_bias = a.output_bias = true;
  a.q = "q_lin", a.k = "k_lin", a.v = "v_lin", a.o = "out_lin";
  Module attend = layers(prefix + "attentions.{layer}", "attention", all_layers(d.layers));
  attend.children = {attention(a)};
  Module mlp = layers(prefix + "ffns.{layer}", "MLPs", all_layers(d.layers));
  mlp.children = {plain_mlp({.hidden = d.hidden,
                             .intermediate = Quantity("4 × emb_dim", 4 * d.hidden.value()),
                             .path = "",
                             .up = "lin1",
                             .down = "lin2"})};
  tree.modules.push_back(std::move(attend)), tree.modules.push_back(std::move(mlp));
  add_norm_of_layers(tree, d, prefix + "layer_norm1", Role::post_attention_norm);
  add_norm_of_layers(tree, d, prefix + "layer_norm2", Role::post_feedforward_norm);
}

void add_xlm_head(ConfigReader& config, ModuleTree& tree, const Decoder& d, ScoreUse use) {
  Module head = head_module("head");
  const bool projects = config.flag("summary_use_proj", true),
             to_labels = config.flag("summary_proj_to_labels", true);
  switch (use) {
    case ScoreUse::alone: return;
    case ScoreUse::guessing:
      config.require(!config.flag("asm", false), "asm is true: a softmax in steps is not described");
      add_scores_of_words(head, d, "pred_layer.proj", "transformer.embeddings.weight");
      break;
    case ScoreUse::sequences:
    case ScoreUse::choices:
      if (projects)
        add_linear(head, head_matrix("sequence_summary.summary", d.hidden,
                                     to_labels ? label_count(config) : d.hidden));
      if (use == ScoreUse::choices) add_linear(head, head_matrix("logits_proj", label_count(config), 1));
      break;
    case ScoreUse::tokens: add_linear(head, head_matrix("classifier", d.hidden, label_count(config))); break;
    case ScoreUse::answers: add_linear(head, head_matrix("qa_outputs", d.hidden, label_count(config))); break;
    case ScoreUse::beams: add_answers_by_beams(head, "qa_outputs.", d.hidden); break;
  }
  if (!head.tensors.empty()) tree.modules.push_back(std::move(head));
}

void describe_xlm(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_scored(config, tree, 30145, 2048, 12);
  const ScoreUse use = score_use(config);
  const std::string prefix(use == ScoreUse::alone ? std::string_view() : kBodyPrefix);
  tree.modules = {embedding(prefix + "embeddings", d.vocabulary, d.hidden)};
  Module tables{"", "positions and languages", {}, {}, {}};
  const auto add = [&](const std::string& name, const Quantity& rows) {
    tables.tensors.push_back(
        parameter(prefix + name + ".weight", {rows, d.hidden}, Role::position_embedding, Part::embedding));
  };
  const Quantity places = config.size("max_position_embeddings", 512);
  add("position_embeddings", places);
  const Quantity languages = config.size("n_langs", 1);
  if (languages.value() > 1 && config.flag("use_lang_emb", true)) add("lang_embeddings", languages);
  add_norm(tables, prefix + "layer_norm_emb", d.hidden, Role::embedding_norm, true);
  add_buffer(tables, prefix + "position_ids", {1, places.value()});
  tree.modules.push_back(std::move(tables));
  add_xlm_layers(tree, d, prefix);
  add_xlm_head(config, tree, d, use);
  if (use == ScoreUse::alone) tree.aliases = {{"", std::string(kBodyPrefix)}};
}

constexpr std::string_view kXlnetArchitectures[] = {"XLNetModel",
                                                    "XLNetLMHeadModel",
                                                    "XLNetForSequenceClassification",
                                                    "XLNetForTokenClassification",
                                                    "XLNetForQuestionAnsweringSimple",
                                                    "XLNetForQuestionAnswering",
                                                    "XLNetForMultipleChoice"},
                           kXlnetTypes[] = {"xlnet"},
                           kXlmArchitectures[] = {"XLMModel",
                                                  "XLMWithLMHeadModel",
                                                  "XLMForSequenceClassification",
                                                  "XLMForTokenClassification",
                                                  "XLMForQuestionAnsweringSimple",
                                                  "XLMForQuestionAnswering",
                                                  "XLMForMultipleChoice"},
                           kXlmTypes[] = {"xlm"},
                           kFlaubertArchitectures[] = {"FlaubertModel",
                                                       "FlaubertWithLMHeadModel",
                                                       "FlaubertForSequenceClassification",
                                                       "FlaubertForTokenClassification",
                                                       "FlaubertForQuestionAnsweringSimple",
                                                       "FlaubertForQuestionAnswering",
                                                       "FlaubertForMultipleChoice"},
                           kFlaubertTypes[] = {"flaubert"};

}  // namespace

const Family kXlnet = {"xlnet", "XLNet", kXlnetArchitectures, kXlnetTypes, {}, describe_xlnet};
const Family kXlm = {"xlm", "XLM", kXlmArchitectures, kXlmTypes, {}, describe_xlm};
const Family kFlaubert = {"flaubert", "FlauBERT", kFlaubertArchitectures, kFlaubertTypes, {}, describe_xlm};

}  // namespace assay::families
