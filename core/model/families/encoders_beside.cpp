// BERTs with further tables in front: TAPAS (arXiv 2004.02349), which reads tables cell by cell; MarkupLM (arXiv 2110.08518), which is
// told where in a page's tree a word stands; RoCBert, which is told how a character sounds and looks. Source: transformers 5.24,
// modeling_tapas.py, modeling_markuplm.py, modeling_roc_bert.py.
#include <fmt/format.h>

#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

TensorSpec table_of(std::string name, const Quantity& rows, const Quantity& width) {
  return parameter("embeddings." + std::move(name), {rows, width}, Role::position_embedding, Part::embedding);
}

void add_dense(Module& module, std::string name, const Quantity& in, const Quantity& out) {
  add_linear(module, {.name = "embeddings." + std::move(name),
                      .in = in,
                      .out = out,
                      .role = Role::other,
                      .part = Part::embedding,
                      .bias = true,
                      .quantizable = false});
}

// Row, column, rank and what else tells a cell: a table for each.
void add_cell_tables(ConfigReader& config, const Decoder& d, Module& more, Module&) {
  const auto sizes =
      config.numbers("type_vocab_sizes").value_or(std::vector<std::uint64_t>{3, 256, 256, 2, 256, 256, 10});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    config.require(sizes[i] > 0, "type_vocab_sizes names a table of no rows");
    more.tensors.push_back(table_of(fmt::format("token_type_embeddings_{}.weight", i),
                                    {fmt::format("type_vocab_sizes[{}]", i), sizes[i]}, d.hidden));
  }
}

// Which cells, in which column, and what is made of them.
void add_cell_head(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  Module head = head_module("which cells answer");
  for (const std::string which : {"", "column_"}) {
    head.tensors.push_back(parameter(which + "output_weights", {hidden}, Role::output_head, Part::output));
    head.tensors.push_back(parameter(which + "output_bias", {}, Role::output_head, Part::output));
  }
  if (config.number("num_aggregation_labels", 0) > 0)
    add_linear(head, head_matrix("aggregation_classifier", hidden, config.size("num_aggregation_labels")));
  tree.modules.push_back(std::move(head));
}

void describe_tapas(ConfigReader& config, ModuleTree& tree) {
  const EncoderKin kin{.prefix = "tapas.", .positions = 1024, .types = 0, .more = add_cell_tables};
  if (encoder_use(config) != EncoderUse::answers) return describe_encoder(config, tree, kin);
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_body(config, tree, d, kin, kin.prefix);
  add_encoder_head(config, tree, EncoderUse::alone, kin.heads,
                   {.prefix = kin.prefix,
                    .table = "",
                    .vocabulary = d.vocabulary,
                    .hidden = d.hidden,
                    .table_width = d.hidden});
  add_cell_head(config, tree, d.hidden);
}

// The way to a word through the tree: at each depth which element, and the how manieth of its kind.
void add_ways(ConfigReader& config, const Decoder& d, Module& more, Module&) {
  constexpr std::uint64_t kDeepest = 1024;
  const Quantity unit = config.size("xpath_unit_hidden_size", 32), depth = config.size("max_depth", 50),
                 way = unit * depth, inner = Quantity(4) * d.hidden;
  config.require(depth.value() <= kDeepest, fmt::format("max_depth is more than {}", kDeepest));
  const std::string at = "xpath_embeddings.";
  add_dense(more, at + "xpath_unitseq2_embeddings", way, d.hidden);
  add_dense(more, at + "xpath_unitseq2_inner", way, inner);
  add_dense(more, at + "inner2emb", inner, d.hidden);
  const Quantity tags = config.size("max_xpath_tag_unit_embeddings", 256),
                 places = config.size("max_xpath_subs_unit_embeddings", 1024);
  for (std::uint64_t i = 0; i < depth.value(); ++i) {
    more.tensors.push_back(table_of(fmt::format("{}xpath_tag_sub_embeddings.{}.weight", at, i), tags, unit));
    more.tensors.push_back(
        table_of(fmt::format("{}xpath_subs_sub_embeddings.{}.weight", at, i), places, unit));
  }
}

void describe_markuplm(ConfigReader& config, ModuleTree& tree) {
  describe_encoder(config, tree, {.prefix = "markuplm.", .more = add_ways});
}

// Both tables are there, whatever enters.
void add_sounds_and_shapes(ConfigReader& config, const Decoder& d, Module& more, Module&) {
  const Quantity sound = config.size("pronunciation_embed_dim", 768),
                 shape = config.size("shape_embed_dim", 512);
  more.tensors.push_back(
      table_of("pronunciation_embed.weight", config.size("pronunciation_vocab_size", 910), sound));
  more.tensors.push_back(table_of("shape_embed.weight", config.size("shape_vocab_size", 24858), shape));
  if (!config.flag("concat_input", true)) return;
  Quantity in = d.hidden;
  if (config.flag("enable_pronunciation", true)) in = in + sound;
  if (config.flag("enable_shape", true)) in = in + shape;
  add_dense(more, "map_inputs_layer", in, d.hidden);
}

void describe_roc_bert(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("add_cross_attention", false), "add_cross_attention is true");
  EncoderKin kin{.prefix = "roc_bert.", .more = add_sounds_and_shapes};
  kin.heads.order = "";
  describe_encoder(config, tree, kin);
}

constexpr std::string_view kTapasNames[] = {"TapasModel", "TapasForMaskedLM", "TapasForQuestionAnswering",
                                            "TapasForSequenceClassification"},
                           kTapasTypes[] = {"tapas"},
                           kMarkupNames[] = {"MarkupLMModel", "MarkupLMForQuestionAnswering",
                                             "MarkupLMForSequenceClassification",
                                             "MarkupLMForTokenClassification"},
                           kMarkupTypes[] = {"markuplm"},
                           kRocBertNames[] = {"RoCBertModel",
                                              "RoCBertForCausalLM",
                                              "RoCBertForMaskedLM",
                                              "RoCBertForMultipleChoice",
                                              "RoCBertForPreTraining",
                                              "RoCBertForQuestionAnswering",
                                              "RoCBertForSequenceClassification",
                                              "RoCBertForTokenClassification"},
                           kRocBertTypes[] = {"roc_bert"};

}  // namespace

const Family kTapas = {"tapas", "TAPAS", kTapasNames, kTapasTypes, {}, describe_tapas};
const Family kMarkuplm = {"markuplm", "MarkupLM", kMarkupNames, kMarkupTypes, {}, describe_markuplm};
const Family kRocBert = {"roc_bert", "RoCBert", kRocBertNames, kRocBertTypes, {}, describe_roc_bert};

}  // namespace assay::families
