// Deformable DETR: a DETR whose layers look at a few places of each of several pictures. Source: transformers 5.23; layers are
// named as releases have them.
#include "core/model/families/all_watchers.h"
#include "core/model/families/detectors.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Guessing {
  Quantity hidden, classes;
  std::uint64_t guesses;  // one behind each layer, and one of what is seen
  bool classes_apart, boxes_apart;
};

// Classes and boxes: one head for all layers, which releases hold for each, or one for each.
void add_guesses(ModuleTree& tree, const Guessing& of) {
  const Quantity all("decoder_layers", of.guesses);
  const auto add = [&](Module& module, bool boxes) {
    if (boxes)
      add_box(module, "bbox_embed.{layer}.layers", of.hidden);
    else
      Tower(module, Part::vision).matrix("class_embed.{layer}", of.hidden, of.classes, true);
  };
  for (const bool boxes : {false, true}) {
    const bool apart = boxes ? of.boxes_apart : of.classes_apart;
    const char* title = boxes ? "boxes" : "classes";
    for (const bool first : {true, false}) {
      if (apart && !first) continue;
      const auto which = layers_where(all, [&](std::uint64_t i) { return apart || (i == 0) == first; });
      if (which.empty()) continue;
      Module told = layers(apart ? "model.decoder" : "", title, which);
      add(told, boxes);
      for (TensorSpec& spec : told.tensors) {
        if (first) continue;
        spec.storage = Storage::tied;
        spec.same_as = spec.name;
        spec.same_as.replace(spec.same_as.find("{layer}"), 7, "0");
      }
      tree.modules.push_back(std::move(told));
    }
  }
  if (of.classes_apart) tree.aliases.push_back({"model.decoder.class_embed.", "class_embed."});
  if (of.boxes_apart) tree.aliases.push_back({"model.decoder.bbox_embed.", "bbox_embed."});
}

void describe_deformable_detr(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture().ends_with("Model");
  const std::string prefix = alone ? "" : "model.";
  if (alone) tree.aliases = {{"", "model."}};
  const Quantity hidden = config.size("d_model", 256), levels = config.size("num_feature_levels", 4);
  tree.hidden_size = hidden.value();
  const bool several = levels.value() > 1, two_stage = config.flag("two_stage", false),
             refines = config.flag("with_box_refine", false);
  config.require(!two_stage || refines,
                 "two_stage is true, and with_box_refine is not, which the class wants");
  const auto taken = add_detector_backbone(
      config, tree, prefix + "backbone.conv_encoder.model",
      {several ? std::vector<std::uint64_t>{2, 3, 4} : std::vector<std::uint64_t>{4}, "", false});
  const auto places = [&](const std::string& side) {
    const Quantity heads = config.size(side + "_attention_heads", 8);
    config.require_divides(heads, hidden);
    return heads * levels * config.size(side + "_n_points", 4);
  };
  Module encoder = layers(prefix + "encoder.layers.{layer}", "encoder layers",
                          all_layers(read_layers(config, "encoder_layers", 6)));
  add_deformable_layer(encoder, "", {hidden, config.size("encoder_ffn_dim", 1024), places("encoder")});
  tree.modules.push_back(std::move(encoder));
  const Quantity depth = read_layers(config, "decoder_layers", 6);
  Module layer = detector_layers(prefix + "decoder.layers.{layer}", "decoder layers", depth, hidden,
                                 config.size("decoder_ffn_dim", 1024));
  add_few_places(layer, "encoder_attn", hidden, places("decoder"));
  Tower(layer, Part::vision).norm("encoder_attn_layer_norm", hidden, true);
  tree.modules.push_back(std::move(layer));
  Module& own = add_image_module(tree, trimmed(prefix), "pictures and queries");
  add_pictures(config, own, "input_proj", taken, hidden);
  Tower tower(own, Part::vision);
  tower.tensor("level_embed", {levels, hidden});
  const Quantity both = Quantity(2) * hidden;
  if (two_stage)
    tower.matrix("enc_output", hidden, hidden, true)
        .norm("enc_output_norm", hidden, true)
        .matrix("pos_trans", both, both, true)
        .norm("pos_trans_norm", both, true);
  else
    tower.tensor("query_position_embeddings.weight", {config.size("num_queries", 300), both})
        .matrix("reference_points", hidden, 2, true);
  config.require(config.text("position_embedding_type", "sine") == "sine",
                 "position_embedding_type is not sine: learnt places are not described");
  if (!alone)
    add_guesses(tree, {hidden, label_count(config), depth.value() + (two_stage ? 1 : 0), two_stage, refines});
}

constexpr std::string_view kDeformableArchitectures[] = {"DeformableDetrModel",
                                                         "DeformableDetrForObjectDetection"},
                           kDeformableTypes[] = {"deformable_detr"};

}  // namespace

const Family kDeformableDetr = {
    "deformable_detr",       "Deformable DETR", kDeformableArchitectures, kDeformableTypes, {},
    describe_deformable_detr};

}  // namespace assay::families
