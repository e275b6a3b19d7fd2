// ALBERT: one layer, or a few, that a text passes again and again. Weights are counted once, and what is computed is told of one
// pass. Source: transformers 5.24.
#include <fmt/format.h>

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

EncoderKin albert_kin() {
  EncoderKin kin{.prefix = "albert.",
                 .narrow = 128,
                 .widens = "encoder.embedding_hidden_mapping_in",
                 .always_widens = true};
  kin.sizes = {
      .vocabulary = 30000, .hidden = 4096, .intermediate = 16384, .layers = 12, .heads = 64, .tied = true};
  kin.layer = "encoder.albert_layer_groups.{layer}.albert_layers.0";
  kin.attend.q = "query", kin.attend.k = "key", kin.attend.v = "value", kin.attend.o = "dense";
  kin.attention_norm = "attention.LayerNorm", kin.mlp_norm = "full_layer_layer_norm";
  kin.up = "ffn", kin.down = "ffn_output";
  kin.heads.pooler = "pooler";
  kin.heads.guessing = {"predictions.dense", "predictions.LayerNorm", "predictions.decoder",
                        "predictions.bias"};
  kin.heads.order = "sop_classifier.classifier", kin.heads.order_has_labels = true;
  return kin;
}

void describe_albert(ConfigReader& config, ModuleTree& tree) {
  config.require(config.size("inner_group_num", 1).value() == 1,
                 "inner_group_num is not 1: groups of several layers are not described");
  EncoderKin kin = albert_kin();
  const Quantity passes = read_layers(config, "num_hidden_layers", kin.sizes.layers);
  const Quantity groups = config.size("num_hidden_groups", 1);
  config.require(groups.value() <= passes.value(), "num_hidden_groups exceeds num_hidden_layers");
  kin.layers_key = "num_hidden_groups", kin.sizes.layers = 1;
  describe_encoder(config, tree, kin);
  if (passes.value() == groups.value()) return;
  tree.not_counted.push_back(
      {fmt::format("passes behind the first: a text passes {} layers of {} stored, and what is computed is "
                   "told of each once",
                   passes.value(), groups.value()),
       0});
}

constexpr std::string_view kAlbertArchitectures[] = {"AlbertModel",
                                                     "AlbertForMaskedLM",
                                                     "AlbertForPreTraining",
                                                     "AlbertForSequenceClassification",
                                                     "AlbertForTokenClassification",
                                                     "AlbertForQuestionAnswering",
                                                     "AlbertForMultipleChoice"},
                           kAlbertTypes[] = {"albert"};

}  // namespace

const Family kAlbert = {"albert", "ALBERT", kAlbertArchitectures, kAlbertTypes, {}, describe_albert};

}  // namespace assay::families
