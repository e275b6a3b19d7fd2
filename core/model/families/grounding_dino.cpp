// Grounding DINO, which finds in images what words name: a Swin, a BERT, an encoder in which both meet and a decoder that looks
// at both. MM Grounding DINO has biases of classes, too. Source: transformers 5.23.
#include "core/model/families/all_watchers.h"
#include "core/model/families/detectors.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Grounding {
  std::string prefix;
  Quantity hidden, wide_encoder, wide_decoder, places_encoder, places_decoder;
};

void add_attends(Tower& into, const std::string& path, const Quantity& hidden) {
  for (const char* name : {".query", ".key", ".value", ".out_proj"})
    into.matrix(path + name, hidden, hidden, true);
}

// Words and places look at each other, then each at themselves.
void add_meeting_layers(ConfigReader& document, ModuleTree& tree, const Grounding& of) {
  const Quantity& hidden = of.hidden;
  const Quantity inner = document.quotient(of.wide_encoder, 2, "encoder_ffn_dim / 2");
  Module layer = layers(of.prefix + "encoder.layers.{layer}", "encoder layers",
                        all_layers(read_layers(document, "encoder_layers", 6)));
  Tower into(layer, Part::vision);
  for (const std::string side : {"vision", "text"}) {
    const std::string meets = "fusion_layer.attn.";
    into.matrix(meets + side + "_proj", hidden, inner, true)
        .matrix(meets + "values_" + side + "_proj", hidden, inner, true)
        .matrix(meets + "out_" + side + "_proj", inner, hidden, true)
        .norm("fusion_layer.layer_norm_" + side, hidden, true)
        .tensor("fusion_layer." + side + "_param", {hidden});
  }
  add_attends(into, "text_enhancer_layer.self_attn", hidden);
  into.matrix("text_enhancer_layer.fc1", hidden, inner, true)
      .matrix("text_enhancer_layer.fc2", inner, hidden, true)
      .norm("text_enhancer_layer.layer_norm_before", hidden, true)
      .norm("text_enhancer_layer.layer_norm_after", hidden, true);
  add_deformable_layer(layer, "deformable_layer.", {hidden, of.wide_encoder, of.places_encoder});
  tree.modules.push_back(std::move(layer));
}

void add_looking_layers(const Quantity& depth, ModuleTree& tree, const Grounding& of) {
  Module layer = layers(of.prefix + "decoder.layers.{layer}", "decoder layers", all_layers(depth));
  Tower into(layer, Part::vision);
  add_attends(into, "self_attn", of.hidden);
  add_attends(into, "encoder_attn_text", of.hidden);
  add_few_places(layer, "encoder_attn", of.hidden, of.places_decoder);
  for (const char* norm : {"self_attn_layer_norm", "encoder_attn_text_layer_norm", "encoder_attn_layer_norm",
                           "final_layer_norm"})
    into.norm(norm, of.hidden, true);
  into.matrix("fc1", of.hidden, of.wide_decoder, true).matrix("fc2", of.wide_decoder, of.hidden, true);
  tree.modules.push_back(std::move(layer));
}

// Queries, and first guesses of what the encoder saw, which MM Grounding DINO makes whatever two_stage says.
void add_first_guesses(ConfigReader& document, Module& own, const Grounding& of, bool always_two_stage) {
  const Quantity& hidden = of.hidden;
  const Quantity queries = document.size("num_queries", 900), sides = document.size("query_dim", 4);
  const bool two_stage = document.flag("two_stage", true);
  document.require(sides.value() == 2 || sides.value() == 4, "query_dim is neither two nor four");
  Tower into(own, Part::vision);
  if (document.flag("embedding_init_target", true) || !two_stage)
    into.tensor("query_position_embeddings.weight", {queries, hidden});
  add_perceptron(own, "decoder.reference_points_head.layers",
                 {Quantity(sides.value() / 2) * hidden, hidden, hidden});
  into.norm("decoder.layer_norm", hidden, true);
  if (!two_stage && !always_two_stage) {
    into.tensor("reference_points.weight", {queries, 4});
    return;
  }
  document.require(!document.flag("two_stage_bbox_embed_share", false),
                   "two_stage_bbox_embed_share is true: such a head is not described");
  into.matrix("enc_output", hidden, hidden, true).norm("enc_output_norm", hidden, true);
  add_box(own, "encoder_output_bbox_embed.layers", hidden);
}

// One head for all layers of the decoder, or one for each; `biases`: of classes.
void add_grounded_boxes(ConfigReader& document, ModuleTree& tree, const Quantity& depth,
                        const Quantity& hidden, bool biases) {
  const auto heads = [&](const std::string& key) {
    return all_layers(document.flag(key, true) ? Quantity(1) : depth);
  };
  Module boxes = layers("model.decoder", "boxes", heads("decoder_bbox_embed_share"));
  add_box(boxes, "bbox_embed.{layer}.layers", hidden);
  tree.modules.push_back(std::move(boxes));
  tree.aliases.push_back({"model.decoder.bbox_embed.", "bbox_embed."});
  if (!biases) return;
  Module classes = layers("model.decoder", "biases of classes", heads("decoder_cls_embed_share"));
  Tower(classes, Part::vision).tensor("class_embed.{layer}.bias", {});
  tree.modules.push_back(std::move(classes));
  tree.aliases.push_back({"model.decoder.class_embed.", "class_embed."});
}

void describe_grounding(ConfigReader& config, ModuleTree& tree, bool biases) {
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "grounding-dino");
  const bool alone = own.architecture().ends_with("Model");
  Grounding of{alone ? "" : "model.", document.size("d_model", 256), document.size("encoder_ffn_dim", 2048),
               document.size("decoder_ffn_dim", 2048)};
  const auto places = [&](const std::string& side) {
    const Quantity heads = document.size(side + "_attention_heads", 8);
    document.require_divides(heads, of.hidden);
    return heads * document.size("num_feature_levels", 4) * document.size(side + "_n_points", 4);
  };
  of.places_encoder = places("encoder"), of.places_decoder = places("decoder");
  document.require(document.text("position_embedding_type", "sine") == "sine",
                   "position_embedding_type is not sine: learnt places are not described");
  const EncoderKin bert;
  const Decoder d = read_encoder(config, tree, bert);
  TowerConfig backbone(document, tree, "backbone_config");
  document.require(backbone && backbone->text("model_type", "") == "swin",
                   "backbone_config is not that of a Swin: over others it is not described");
  const auto taken = add_swin_backbone(*backbone, tree, of.prefix + "backbone.conv_encoder.model.");
  add_encoder_tables(config, tree, d, bert, of.prefix + "text_backbone.");
  tree.modules.push_back(encoder_layer(d, bert, of.prefix + "text_backbone."));
  add_meeting_layers(document, tree, of);
  const Quantity depth = read_layers(document, "decoder_layers", 6);
  add_looking_layers(depth, tree, of);
  Module& beside = add_image_module(tree, trimmed(of.prefix), "pictures, words and queries");
  add_pictures(document, beside, "input_proj_vision", taken, of.hidden);
  Tower(beside, Part::vision)
      .matrix("text_projection", d.hidden, of.hidden, true)
      .tensor("level_embed", {document.size("num_feature_levels", 4), of.hidden});
  add_first_guesses(document, beside, of, biases);
  if (biases) Tower(beside, Part::vision).tensor("encoder_output_class_embed.bias", {});
  if (alone)
    tree.aliases = {{"", "model."}};
  else
    add_grounded_boxes(document, tree, depth, of.hidden, biases);
}

void describe_grounding_dino(ConfigReader& config, ModuleTree& tree) {
  describe_grounding(config, tree, false);
}
void describe_mm_grounding_dino(ConfigReader& config, ModuleTree& tree) {
  describe_grounding(config, tree, true);
}

constexpr std::string_view kGroundingArchitectures[] = {"GroundingDinoModel",
                                                        "GroundingDinoForObjectDetection"},
                           kGroundingTypes[] = {"grounding-dino"},
                           kMmArchitectures[] = {"MMGroundingDinoModel", "MMGroundingDinoForObjectDetection"},
                           kMmTypes[] = {"mm-grounding-dino"};

}  // namespace

const Family kGroundingDino = {
    "grounding-dino",       "Grounding DINO", kGroundingArchitectures, kGroundingTypes, {},
    describe_grounding_dino};
const Family kMmGroundingDino = {
    "mm-grounding-dino", "MM Grounding DINO", kMmArchitectures, kMmTypes, {}, describe_mm_grounding_dino};

}  // namespace assay::families
