// DeBERTa, of which version 3 is published as version 2: scores of what stands where, beside those of what stands there, from a
// table of distances that all layers share. Source: transformers 5.24.
#include <algorithm>

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// Which of "c2p" and "p2c" are scored: a list, or one text with bars between.
struct Scored {
  bool content_to_place = false, place_to_content = false;
};
Scored read_scored(ConfigReader& config) {
  const auto read = [](std::string_view text) {
    return Scored{text.find("c2p") != text.npos, text.find("p2c") != text.npos};
  };
  if (!config.is_list("pos_att_type")) return read(config.text("pos_att_type", ""));
  Scored scored;
  const auto kinds = config.texts("pos_att_type");
  for (const std::string& kind : *kinds) {
    const Scored one = read(kind);
    scored.content_to_place |= one.content_to_place, scored.place_to_content |= one.place_to_content;
  }
  return scored;
}

// Rows of the table of distances: twice the farthest one, which -1 leaves to the number of places.
Quantity distances(ConfigReader& config, bool buckets) {
  constexpr double kMost = 1 << 24;
  const auto read = [&](const char* key) { return config.real(key, -1, -1, kMost); };
  if (const double count = buckets ? read("position_buckets") : -1; count >= 1)
    return Quantity(2) * Quantity("position_buckets", static_cast<std::uint64_t>(count));
  if (const double farthest = read("max_relative_positions"); farthest >= 1)
    return Quantity(2) * Quantity("max_relative_positions", static_cast<std::uint64_t>(farthest));
  return Quantity(2) * config.size("max_position_embeddings", 512);
}

void add_distances(ConfigReader& config, const Decoder& d, Module& more, bool buckets) {
  more.tensors.push_back(parameter("encoder.rel_embeddings.weight", {distances(config, buckets), d.hidden},
                                   Role::position_embedding, Part::embedding));
}

// A bias of queries and one of values beside the matrix of all three.
void add_deberta_parts(ConfigReader& config, const Decoder& d, Module& more, Module& layer) {
  Module& attend = layer.children.front();
  for (const auto& [name, role] : {std::pair{"self.q_bias", Role::q}, std::pair{"self.v_bias", Role::v}}) {
    TensorSpec bias = parameter(name, {d.hidden}, role, Part::attention);
    bias.bias = true;
    bias.parallel = {Partition::columns, 0, {{role, d.hidden.value(), d.heads.value()}}};
    attend.tensors.push_back(std::move(bias));
  }
  config.require(!config.flag("talking_head", false), "talking_head is true: it is not described");
  if (!config.flag("relative_attention", false)) return;
  const Scored scored = read_scored(config);
  if (scored.content_to_place) add_further_heads(attend, d, "self.pos_proj", false);
  if (scored.place_to_content) add_further_heads(attend, d, "self.pos_q_proj", true);
  add_distances(config, d, more, false);
}

// The first layer's output is joined with a convolution over words in some.
void add_word_convolution(ConfigReader& config, const Decoder& d, Module& more) {
  const std::uint64_t kernel = config.number("conv_kernel_size", 0);
  if (kernel == 0) return;
  const Quantity groups = config.size("conv_groups", 1);
  const Quantity each = config.quotient(d.hidden, groups, "hidden_size / conv_groups");
  more.tensors.push_back(parameter("encoder.conv.conv.weight",
                                   {d.hidden, each, Quantity("conv_kernel_size", kernel)}, Role::convolution,
                                   Part::dense_mlp));
  TensorSpec bias = parameter("encoder.conv.conv.bias", {d.hidden}, Role::convolution, Part::dense_mlp);
  bias.bias = true;
  more.tensors.push_back(std::move(bias));
  add_norm(more, "encoder.conv.LayerNorm", d.hidden, Role::post_feedforward_norm, true);
}

void add_deberta_v2_parts(ConfigReader& config, const Decoder& d, Module& more, Module& layer) {
  config.require(config.size("attention_head_size", d.head_dim).value() == d.head_dim.value(),
                 "attention_head_size does not follow from hidden_size: it is not described");
  add_word_convolution(config, d, more);
  if (config.text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos)
    add_norm(more, "encoder.LayerNorm", d.hidden, Role::embedding_norm, true);
  if (!config.flag("relative_attention", false)) return;
  const Scored scored = read_scored(config);
  Module& attend = layer.children.front();
  if (!config.flag("share_att_key", false)) {
    if (scored.content_to_place) add_further_heads(attend, d, "self.pos_key_proj", true);
    if (scored.place_to_content) add_further_heads(attend, d, "self.pos_query_proj", true);
  }
  add_distances(config, d, more, true);
}

void describe_deberta_of(ConfigReader& config, ModuleTree& tree, EncoderKin kin) {
  kin.prefix = "deberta.", kin.types = 0, kin.types_may_be_none = true;
  if (!config.flag("position_biased_input", true)) kin.positions = 0;
  config.require(config.size("embedding_size", config.size("hidden_size", kin.sizes.hidden)).value() ==
                     config.size("hidden_size", kin.sizes.hidden).value(),
                 "embedding_size is not hidden_size: a DeBERTa with narrower tables is not described");
  config.require(config.size("pooler_hidden_size", config.size("hidden_size", kin.sizes.hidden)).value() ==
                     config.size("hidden_size", kin.sizes.hidden).value(),
                 "pooler_hidden_size is not hidden_size: such a pooler is not described");
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::beside;
  kin.heads.beside = kin.heads.choices_beside = "pooler.dense";
  if (!config.flag("legacy", true)) {
    const std::string head = "lm_predictions.lm_head.";
    kin.heads.guessing = {head + "dense", head + "LayerNorm", "", head + "bias"};
  }
  describe_encoder(config, tree, kin);
}

void describe_deberta(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.more = add_deberta_parts};
  kin.sizes.vocabulary = 50265;
  kin.attend.fused = "self.in_proj", kin.attend.qkv_bias = false;
  describe_deberta_of(config, tree, std::move(kin));
}

void describe_deberta_v2(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.more = add_deberta_v2_parts};
  kin.sizes = {
      .vocabulary = 128100, .hidden = 1536, .intermediate = 6144, .layers = 24, .heads = 24, .tied = true};
  kin.attend.q = "self.query_proj", kin.attend.k = "self.key_proj", kin.attend.v = "self.value_proj";
  describe_deberta_of(config, tree, std::move(kin));
}

constexpr std::string_view kDebertaArchitectures[] = {"DebertaModel", "DebertaForMaskedLM",
                                                      "DebertaForSequenceClassification",
                                                      "DebertaForTokenClassification",
                                                      "DebertaForQuestionAnswering"},
                           kDebertaTypes[] = {"deberta"};
constexpr std::string_view kDebertaV2Architectures[] = {"DebertaV2Model",
                                                        "DebertaV2ForMaskedLM",
                                                        "DebertaV2ForSequenceClassification",
                                                        "DebertaV2ForTokenClassification",
                                                        "DebertaV2ForQuestionAnswering",
                                                        "DebertaV2ForMultipleChoice"},
                           kDebertaV2Types[] = {"deberta-v2"};

}  // namespace

const Family kDeberta = {"deberta", "DeBERTa", kDebertaArchitectures, kDebertaTypes, {}, describe_deberta};
const Family kDebertaV2 = {"deberta_v2", "DeBERTa V2, V3",   kDebertaV2Architectures, kDebertaV2Types,
                           {},           describe_deberta_v2};

}  // namespace assay::families
