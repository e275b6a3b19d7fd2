// Funnel Transformer (arXiv 2006.03236): blocks of layers between which a text grows shorter, and a few layers behind that see all
// of it again; scores by distance, with vectors of their own for each head. Source: transformers 5.24, modeling_funnel.py.
#include <fmt/format.h>

#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_heads.h"

namespace assay::families {
namespace {

using namespace blocks;

struct FunnelSizes {
  Decoder d;
  std::vector<std::uint64_t> blocks;
  std::uint64_t behind;  // layers
};

FunnelSizes read_funnel(ConfigReader& config, ModuleTree& tree, bool shortened) {
  constexpr std::uint64_t kMost = 1024;
  FunnelSizes f;
  f.d.vocabulary = config.size("vocab_size", 30522);
  f.d.hidden = config.size("d_model|hidden_size", 768);
  f.d.heads = f.d.kv_heads = config.size("n_head|num_attention_heads", 12);
  f.d.head_dim = config.size("d_head", 64);
  f.d.intermediate = config.size("d_inner", 3072);
  f.d.tied = config.tied_embeddings(true);
  f.blocks = config.numbers("block_sizes").value_or(std::vector<std::uint64_t>{4, 4, 4});
  f.behind = shortened ? 0 : config.number("num_decoder_layers", 2);
  config.require(!f.blocks.empty() && f.blocks.size() <= kMost && f.behind <= kMost,
                 "block_sizes or num_decoder_layers name no number of layers that a model has");
  std::uint64_t all = f.behind;
  for (const std::uint64_t size : f.blocks) {
    config.require(size > 0 && size <= kMost, "block_sizes names a block of no size that a model has");
    all += size;
  }
  f.d.layers = {"layers", all};
  note_sizes(tree, f.d);
  return f;
}

Module funnel_attention(const Decoder& d) {
  Module module{"attention", std::string(title(Part::attention)), {}, {}, {}};
  const Quantity width = d.heads * d.head_dim;
  for (const auto& [name, role] : {std::pair("q_head", Role::q), {"k_head", Role::k}, {"v_head", Role::v}})
    add_linear(module, {.name = name,
                        .in = d.hidden,
                        .out = width,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = d.heads.value(),
                        .bias = role != Role::q});
  for (const char* name : {"r_w_bias", "r_r_bias", "r_s_bias"})
    module.tensors.push_back(
        parameter(name, {d.heads, d.head_dim}, Role::position_embedding, Part::attention));
  module.tensors.push_back(
      parameter("r_kernel", {d.hidden, d.heads, d.head_dim}, Role::position_embedding, Part::attention));
  module.tensors.push_back(
      parameter("seg_embed", {2, d.heads, d.head_dim}, Role::position_embedding, Part::attention));
  add_linear(module, {.name = "post_proj",
                      .in = width,
                      .out = d.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = d.heads.value(),
                      .bias = true});
  add_norm(module, "layer_norm", d.hidden, Role::post_attention_norm, true);
  return module;
}

Module funnel_layers(const Decoder& d, std::string path, std::string title, std::uint64_t count) {
  Module layer = layers(std::move(path), std::move(title), all_layers(count));
  Module mlp = plain_mlp({.hidden = d.hidden,
                          .intermediate = d.intermediate,
                          .path = "ffn",
                          .up = "linear_1",
                          .down = "linear_2"});
  add_norm(mlp, "layer_norm", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {funnel_attention(d), std::move(mlp)};
  return layer;
}

void add_funnel_head(ConfigReader& config, ModuleTree& tree, EncoderUse use, const Decoder& d,
                     const std::string& table) {
  Module head = head_module("head");
  switch (use) {
    case EncoderUse::guessing:
      tree.modules.push_back(output_head("lm_head", d.vocabulary, d.hidden, d.tied, table, true));
      return;
    case EncoderUse::sequences:
    case EncoderUse::choices:
      add_linear(head, head_matrix("classifier.linear_hidden", d.hidden, d.hidden));
      add_linear(head, head_matrix("classifier.linear_out", d.hidden,
                                   use == EncoderUse::choices ? Quantity(1) : label_count(config)));
      break;
    case EncoderUse::tokens:
      add_linear(head, head_matrix("classifier", d.hidden, label_count(config)));
      break;
    case EncoderUse::answers:
      add_linear(head, head_matrix("qa_outputs", d.hidden, label_count(config)));
      break;
    case EncoderUse::pretraining:
      add_linear(head, head_matrix("discriminator_predictions.dense", d.hidden, d.hidden));
      add_linear(head, head_matrix("discriminator_predictions.dense_prediction", d.hidden, 1));
      break;
    default: return;
  }
  tree.modules.push_back(std::move(head));
}

// What classifies a text sees it shortened, with nothing behind the blocks.
void describe_funnel(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = encoder_use(config);
  const bool shortened = use == EncoderUse::sequences || use == EncoderUse::choices ||
                         config.config().architecture().ends_with("BaseModel");
  const FunnelSizes f = read_funnel(config, tree, shortened);
  const std::string prefix = use == EncoderUse::alone ? "" : "funnel.";
  tree.modules.push_back(embedding(prefix + "embeddings.word_embeddings", f.d.vocabulary, f.d.hidden));
  tree.modules.push_back(norm(prefix + "embeddings.layer_norm", f.d.hidden, Role::embedding_norm, true));
  for (std::size_t i = 0; i < f.blocks.size(); ++i)
    tree.modules.push_back(funnel_layers(f.d, fmt::format("{}encoder.blocks.{}.{{layer}}", prefix, i),
                                         fmt::format("block {}", i), f.blocks[i]));
  if (f.behind > 0)
    tree.modules.push_back(
        funnel_layers(f.d, prefix + "decoder.layers.{layer}", "layers that see all again", f.behind));
  add_funnel_head(config, tree, use, f.d, prefix + "embeddings.word_embeddings.weight");
  if (use == EncoderUse::alone) tree.aliases = {{"", "funnel."}};
}

constexpr std::string_view kFunnelNames[] = {"FunnelModel",
                                             "FunnelBaseModel",
                                             "FunnelForMaskedLM",
                                             "FunnelForMultipleChoice",
                                             "FunnelForPreTraining",
                                             "FunnelForQuestionAnswering",
                                             "FunnelForSequenceClassification",
                                             "FunnelForTokenClassification"},
                           kFunnelTypes[] = {"funnel"};

}  // namespace

const Family kFunnel = {"funnel", "Funnel Transformer", kFunnelNames, kFunnelTypes, {}, describe_funnel};

}  // namespace assay::families
