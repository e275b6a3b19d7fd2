// DETR and its first kin, which find things by queries that look at what a ResNet saw: Table Transformer, which finds tables,
// Conditional DETR, whose contents and places meet in matrices of their own, and DAB-DETR, whose queries are boxes. Source:
// transformers 5.23; layers are named as releases have them.
#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/detectors.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

struct DetrKin {
  std::string inside;  // of the model within one that cuts out: "detr."
  std::uint64_t queries = 100;
  bool encoder_norm = false;  // behind the encoder's layers
  std::string places = "position_embedding";
  TimmTaken timm = {{1, 2, 3, 4}};
};

struct Detr {
  std::string prefix, outer;
  Quantity hidden, wide_encoder, wide_decoder;
  std::vector<Quantity> taken;  // channels of the backbone's pictures
};

bool finds_things(const ConfigReader& config) {
  return !config.config().architecture().ends_with("Model");
}
bool masks_things(const ConfigReader& config) {
  return config.config().architecture().ends_with("ForSegmentation");
}

// What is learnt of places, where they are not sines.
void add_learnt_places(ConfigReader& config, ModuleTree& tree, const std::string& path,
                       const Quantity& hidden) {
  const std::string kind = config.text("position_embedding_type", "sine");
  config.require(kind == "sine" || kind == "learned", "position_embedding_type is neither sine nor learned");
  if (kind == "sine") return;
  constexpr std::uint64_t kPlaces = 50;  // on a side, by the class
  const Quantity half("hidden / 2", hidden.value() / 2);
  Tower(add_image_module(tree, path, "places"), Part::vision)
      .tensor("row_embeddings.weight", {kPlaces, half})
      .tensor("column_embeddings.weight", {kPlaces, half});
}

// Backbone, what leads from it, and the encoder's layers.
Detr add_detr_entry(ConfigReader& config, ModuleTree& tree, const DetrKin& kin,
                    const std::string& hidden_key) {
  Detr of;
  of.outer = masks_things(config) ? kin.inside : "";
  of.prefix = finds_things(config) ? of.outer + "model." : "";
  of.hidden = config.size(hidden_key, 256);
  of.wide_encoder = config.size("encoder_ffn_dim", 2048);
  of.wide_decoder = config.size("decoder_ffn_dim", 2048);
  config.require_divides(config.size("encoder_attention_heads", 8), of.hidden);
  config.require_divides(config.size("decoder_attention_heads", 8), of.hidden);
  of.taken = add_detector_backbone(config, tree, of.prefix + "backbone.conv_encoder.model", kin.timm);
  add_convolution(add_image_module(tree, trimmed(of.prefix), "into the encoder"), "input_projection",
                  {of.taken.back(), of.hidden, 1, true});
  tree.modules.push_back(detector_layers(of.prefix + "encoder.layers.{layer}", "encoder layers",
                                         read_layers(config, "encoder_layers", 6), of.hidden,
                                         of.wide_encoder));
  tree.hidden_size = of.hidden.value();
  if (of.prefix.empty()) tree.aliases = {{"", "model."}};
  return of;
}

void add_detr_heads(ConfigReader& config, ModuleTree& tree, const Detr& of, const Quantity& classes) {
  if (of.prefix.empty()) return;
  Module& heads = add_image_module(tree, trimmed(of.outer), "classes and boxes");
  Tower(heads, Part::vision).matrix("class_labels_classifier", of.hidden, classes, true);
  add_box(heads, "bbox_predictor.layers", of.hidden);
  if (!masks_things(config)) return;
  // Attention by heads, and convolutions that double the sides beside the backbone's pictures.
  const Quantity both = of.hidden + config.size("encoder_attention_heads", 8);
  Module& masks = add_image_module(tree, "", "what cuts out");
  Tower attends(masks, Part::vision);
  attends.matrix("bbox_attention.q_linear", of.hidden, of.hidden, true)
      .matrix("bbox_attention.k_linear", of.hidden, of.hidden, true);
  constexpr std::uint64_t kSteps = 5;  // by the class
  config.require(of.taken.size() >= 3 && of.hidden.value() >= (1U << (kSteps - 1)),
                 "the backbone gives fewer pictures than masks need, or d_model is too narrow");
  Quantity in = both;
  for (std::uint64_t i = 1; i <= kSteps; ++i) {
    const Quantity out = i == 1 ? both : Quantity("d_model / 2^n", of.hidden.value() >> (i - 1));
    const std::string number = std::to_string(i), adapter = std::to_string(i - 1);
    add_convolution(masks, "mask_head.lay" + number, {in, out, 3, true});
    Tower(masks, Part::vision).norm("mask_head.gn" + number, out, true);
    if (i > 1 && i < kSteps)
      add_convolution(masks, "mask_head.adapter" + adapter, {of.taken[of.taken.size() - i], out, 1, true});
    in = out;
  }
  add_convolution(masks, "mask_head.out_lay", {in, 1, 3, true});
}

void describe_detr_of(ConfigReader& config, ModuleTree& tree, const DetrKin& kin) {
  const Detr of = add_detr_entry(config, tree, kin, "d_model");
  add_learnt_places(config, tree, of.prefix + kin.places, of.hidden);
  Module layer = detector_layers(of.prefix + "decoder.layers.{layer}", "decoder layers",
                                 read_layers(config, "decoder_layers", 6), of.hidden, of.wide_decoder);
  Tower looks(layer, Part::vision);
  for (const std::string name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    looks.matrix("encoder_attn." + name, of.hidden, of.hidden, true);
  looks.norm("encoder_attn_layer_norm", of.hidden, true);
  tree.modules.push_back(std::move(layer));
  Tower own(add_image_module(tree, trimmed(of.prefix), "queries and last norms"), Part::vision);
  own.tensor("query_position_embeddings.weight", {config.size("num_queries", kin.queries), of.hidden})
      .norm("decoder.layernorm", of.hidden, true);
  if (kin.encoder_norm) own.norm("encoder.layernorm", of.hidden, true);
  add_detr_heads(config, tree, of, label_count(config) + Quantity(1));
}

void describe_detr(ConfigReader& config, ModuleTree& tree) {
  describe_detr_of(config, tree, {"detr."});
}
void describe_tables(ConfigReader& config, ModuleTree& tree) {
  describe_detr_of(config, tree, {.encoder_norm = true, .places = "backbone.position_embedding"});
}

// A layer whose attention has a matrix for contents and one for places: of itself, and of what is seen. Places of queries
// meet what is seen in the first layer alone.
struct PlacedLayers {
  Quantity hidden, wide;
  std::vector<std::uint64_t> which;
  bool first;
};
using PlacedNames = void (*)(Module& layer, const PlacedLayers& of);

void add_placed_layers(ConfigReader& config, ModuleTree& tree, const std::string& path, const Detr& of,
                       PlacedNames add) {
  const Quantity depth = read_layers(config, "decoder_layers", 6);
  for (const bool first : {true, false}) {
    const auto which = layers_where(depth, [&](std::uint64_t i) { return (i == 0) == first; });
    if (which.empty()) continue;
    Module layer = layers(path, first ? "first decoder layer" : "decoder layers", which);
    add(layer, {of.hidden, of.wide_decoder, which, first});
    tree.modules.push_back(std::move(layer));
  }
}

void add_conditional_layer(Module& layer, const PlacedLayers& of) {
  Tower tower(layer, Part::vision);
  for (const std::string name : {"sa_qcontent_proj", "sa_qpos_proj", "sa_kcontent_proj", "sa_kpos_proj",
                                 "sa_v_proj", "self_attn.out_proj", "ca_qcontent_proj", "ca_kcontent_proj",
                                 "ca_kpos_proj", "ca_v_proj", "ca_qpos_sine_proj", "encoder_attn.out_proj"})
    tower.matrix(name, of.hidden, of.hidden, true);
  if (of.first) tower.matrix("ca_qpos_proj", of.hidden, of.hidden, true);
  for (const char* norm : {"self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"})
    tower.norm(norm, of.hidden, true);
  tower.matrix("fc1", of.hidden, of.wide, true).matrix("fc2", of.wide, of.hidden, true);
}

void describe_conditional_detr(ConfigReader& config, ModuleTree& tree) {
  const Detr of = add_detr_entry(config, tree, {"conditional_detr."}, "d_model");
  add_learnt_places(config, tree, of.prefix + "position_embedding", of.hidden);
  add_placed_layers(config, tree, of.prefix + "decoder.layers.{layer}", of, add_conditional_layer);
  Module& own = add_image_module(tree, trimmed(of.prefix), "queries and what stands beside layers");
  Tower(own, Part::vision)
      .tensor("query_position_embeddings.weight", {config.size("num_queries", 300), of.hidden})
      .norm("decoder.layernorm", of.hidden, true);
  add_perceptron(own, "decoder.query_scale.layers", {of.hidden, of.hidden, of.hidden});
  add_perceptron(own, "decoder.ref_point_head.layers", {of.hidden, of.hidden, 2});
  add_detr_heads(config, tree, of, label_count(config));
}

void add_box_layer(Module& layer, const PlacedLayers& of) {
  Tower tower(layer, Part::vision);
  for (const std::string side : {"self_attn", "cross_attn"}) {
    const bool looks = side == "cross_attn";
    const std::string stem = side + "." + side + "_";
    for (const std::string name : {"query_content_proj", "key_content_proj", "key_pos_proj", "value_proj"})
      tower.matrix(stem + name, of.hidden, of.hidden, true);
    if (!looks || of.first) tower.matrix(stem + "query_pos_proj", of.hidden, of.hidden, true);
    if (looks) tower.matrix(stem + "query_pos_sine_proj", of.hidden, of.hidden, true);
    tower.matrix(side + "." + side + ".output_proj", of.hidden, of.hidden, true)
        .norm(stem + "layer_norm", of.hidden, true);
  }
  tower.matrix("mlp.fc1", of.hidden, of.wide, true)
      .matrix("mlp.fc2", of.wide, of.hidden, true)
      .norm("mlp.final_layer_norm", of.hidden, true);
}

void describe_dab_detr(ConfigReader& config, ModuleTree& tree) {
  const Detr of = add_detr_entry(config, tree, {.timm = {{1, 2, 3, 4}, "._backbone", false}}, "hidden_size");
  add_placed_layers(config, tree, of.prefix + "decoder.layers.{layer}", of, add_box_layer);
  const Quantity sides = config.size("query_dim", 4);
  config.require(sides.value() == 4, "query_dim is not four, which the class wants");
  if (config.text("activation_function", "prelu") == "prelu") {  // a slope, in every layer
    const std::size_t all = tree.modules.size();
    for (std::size_t i = 0; i < all; ++i) {
      Module& module = tree.modules[i];
      if (module.path == of.prefix + "encoder.layers.{layer}")
        Tower(module, Part::vision).tensor("activation_fn.weight", {1});
      if (module.path == of.prefix + "decoder.layers.{layer}")
        Tower(module, Part::vision).tensor("mlp.activation_fn.weight", {1});
    }
  }
  Module& own = add_image_module(tree, trimmed(of.prefix), "queries and what stands beside layers");
  Tower tower(own, Part::vision);
  tower.tensor("query_refpoint_embeddings.weight", {config.size("num_queries", 300), sides})
      .norm("decoder.layernorm", of.hidden, true);
  if (config.flag("normalize_before", false)) tower.norm("encoder.norm", of.hidden, true);
  const std::uint64_t patterns = config.number("num_patterns", 0);
  if (patterns > 0) tower.tensor("patterns.weight", {Quantity("num_patterns", patterns), of.hidden});
  for (const char* side : {"encoder", "decoder"})
    add_perceptron(own, std::string(side) + ".query_scale.layers", {of.hidden, of.hidden, of.hidden});
  add_perceptron(own, "decoder.ref_point_head.layers", {Quantity(2) * of.hidden, of.hidden, of.hidden});
  add_perceptron(own, "decoder.ref_anchor_head.layers", {of.hidden, of.hidden, 2});
  if (of.prefix.empty()) return;
  add_box(own, "decoder.bbox_embed.layers", of.hidden);
  Tower(add_image_module(tree, "", "classes"), Part::vision)
      .matrix("class_embed", of.hidden, label_count(config), true);
  tree.aliases = {{"model.decoder.bbox_embed.", "bbox_predictor."}};
}

constexpr std::string_view kDetrArchitectures[] = {"DetrModel", "DetrForObjectDetection",
                                                   "DetrForSegmentation"},
                           kDetrTypes[] = {"detr"},
                           kTableArchitectures[] = {"TableTransformerModel",
                                                    "TableTransformerForObjectDetection"},
                           kTableTypes[] = {"table-transformer"},
                           kConditionalArchitectures[] = {"ConditionalDetrModel",
                                                          "ConditionalDetrForObjectDetection",
                                                          "ConditionalDetrForSegmentation"},
                           kConditionalTypes[] = {"conditional_detr"},
                           kDabArchitectures[] = {"DabDetrModel", "DabDetrForObjectDetection"},
                           kDabTypes[] = {"dab-detr"};

}  // namespace

const Family kDetr = {"detr", "DETR", kDetrArchitectures, kDetrTypes, {}, describe_detr};
const Family kTableTransformer = {
    "table-transformer", "Table Transformer", kTableArchitectures, kTableTypes, {}, describe_tables};
const Family kConditionalDetr = {
    "conditional_detr",       "Conditional DETR", kConditionalArchitectures, kConditionalTypes, {},
    describe_conditional_detr};
const Family kDabDetr = {"dab-detr", "DAB-DETR", kDabArchitectures, kDabTypes, {}, describe_dab_detr};

}  // namespace assay::families
